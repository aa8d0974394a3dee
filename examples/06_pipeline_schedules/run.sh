#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Llama 3 8B on four pipeline ranks: what each schedule takes.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}

"$memest" schedule zbh1 --pp 4 --microbatches 8 --durations F=1,I=1,W=1,comm=0 |
    sed -n '1,/^order/p' | sed '$d'

row() {
    name=$1
    shift
    "$memest" --model llama-3-8b --world-size 8 --format csv \
        --set parallel.pipeline=4 --set parallel.tensor=2 \
        --set train.micro_batch_size=1 --set train.global_batch_size=8 \
        "$@" |
        awk -F, -v name="$name" '
            NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
            $column["reserved_bytes"] > most {
                most = $column["reserved_bytes"]
                rank = $1
                activation = $column["peak_activation_bytes"]
            }
            END {
                printf "%-12s %5d %9.3f %11.3f\n", name, rank, most / 2^30,
                    activation / 2^30
            }'
}

printf '%-12s %5s %9s %11s\n' schedule rank reserved activations
for schedule in 1f1b gpipe zbh1 zbh2 zbv vhalf vmin; do
    row "$schedule" --set pipeline.schedule="$schedule"
done
row own.csv --set pipeline.schedule_file=own.csv
