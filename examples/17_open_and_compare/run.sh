#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A prediction for the tools that people have open, and two ways to compare one.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}
job=../01_one_gpu/job.cfg
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$memest" --model "$job" --format snapshot --output "$folder/rank0.pickle"
"$memest" --model "$job" --format perfetto --output "$folder/job.json"
echo "For pytorch.org/memory_viz: rank0.pickle. For ui.perfetto.dev: job.json."

echo "What the job printed, against what was predicted:"
"$memest" --model "$job" --format json --output "$folder/before.json"
"$memest" diff "$folder/before.json" run.log | sed 1,2d

echo "What longer sequences change:"
"$memest" --model "$job" --set model.seq_length=4096 \
    --set model.max_position_embeddings=4096 --format json \
    --output "$folder/after.json"
"$memest" diff "$folder/before.json" "$folder/after.json" | sed 1,2d
