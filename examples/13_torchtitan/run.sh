#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What torchtitan's activation checkpointing saves on 8 GPUs of 80 GB.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}

row() {
    name=$1
    shift
    "$memest" --format csv --device h100-80gb -- \
        torchrun --nproc_per_node 8 ./train.py --job.config_file job.toml "$@" |
        awk -F, -v name="$name" '
            NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
            NR == 2 {
                printf "%-22s %9.3f %9.3f\n", name,
                    $column["requested_bytes"] / 2^30,
                    $column["reserved_bytes"] / 2^30
            }'
}

printf '%-22s %9s %9s\n' checkpointing requested reserved
row none --activation_checkpoint.mode none
row 'every second block' --activation_checkpoint.selective_ac_option 2
row 'selective, op'
row full --activation_checkpoint.mode full
row 'full, batch of 2' --activation_checkpoint.mode full \
    --training.local_batch_size 2
