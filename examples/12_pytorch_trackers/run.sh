#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What PyTorch's own memory tools say of plain PyTorch jobs, without a GPU.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}
jobs=../../tests/trackers
series=$(mktemp)
trap 'rm -f "$series"' EXIT

echo "What a device has at its peak, and what MemTracker sees of it:"
for flag in "" --as-memtracker; do
    "$memest" track --model "$jobs/mem_tracker_checkpoint.cfg" $flag \
        --input-inside --units MiB --tabulate --depth 1 |
        sed -n '/^Peak$/,/^$/p'
done

echo "A sharded model's first block, module state by module state:"
"$memest" track --model "$jobs/fsdp2_multi_group.cfg" --tool fsdp2 \
    --units MiB --tabulate |
    sed -n '/^Module:  FSDPSequential.0$/,/^Module:  FSDPSequential.1$/p' |
    sed '$d'

echo "The order in which hooks of modules fire in a backward:"
"$memest" track --model "$jobs/display.cfg" --tool mod | cut -f 1-4

echo "The operations after which most more is allocated, from a saved series:"
"$memest" track --model "$jobs/memory_tracker.cfg" --tool memory \
    --format json -o "$series"
"$memest" track --tool memory --load "$series" --top 5
