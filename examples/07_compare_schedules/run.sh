#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# GPT on eight GPUs under several schedules and micro-batch sizes.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

compare() {
    "$memest" compare --model ../../configs/gpt.cfg --schedule 1f1b \
        --schedule interleaved:2 --schedule interleaved:3 \
        --schedule interleaved:4 --variant small:train.micro_batch_size=1 "$@"
}

compare
# The page is kept where somebody asks for it; it needs Vega.
page=${PAGE:-$out/compare.html}
if compare --format html -o "$page" 2> "$out/why"; then
    echo "$(basename "$page"): $(wc -c < "$page") bytes, to be opened in a browser"
else
    cat "$out/why"
fi
