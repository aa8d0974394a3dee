#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Llama 3 8B on eight GPUs under several settings: the worst rank of each.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}

row() {
    name=$1
    shift
    "$memest" --model llama-3-8b --world-size 8 --format csv \
        --set train.micro_batch_size=1 --set train.global_batch_size=16 \
        --set optimizer.distributed=true "$@" |
        awk -F, -v name="$name" '
            NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
            $column["reserved_bytes"] > most {
                most = $column["reserved_bytes"]
                rank = $1
                activation = $column["peak_activation_bytes"]
                state = $column["peak_optimizer_state_bytes"]
            }
            END {
                printf "%-38s %5d %9.3f %11.3f %10.3f\n", name, rank,
                    most / 2^30, activation / 2^30, state / 2^30
            }'
}

printf '%-38s %5s %9s %11s %10s\n' settings rank reserved activations "Adam state"
row "data 8"
row "data 8, full recomputation" --set recompute.granularity=full \
    --set recompute.num_layers=1
row "tensor 2, sequence parallel" --set parallel.tensor=2 --set parallel.sequence=true
row "tensor 8, sequence parallel" --set parallel.tensor=8 --set parallel.sequence=true
row "pipeline 2" --set parallel.pipeline=2
row "pipeline 4" --set parallel.pipeline=4
row "pipeline 4, two chunks a rank" --set parallel.pipeline=4 \
    --set parallel.virtual_pipeline=2
echo "(GiB of the worst rank; activations and state at its peak)"
