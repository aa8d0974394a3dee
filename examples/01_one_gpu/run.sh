#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A job on one GPU: the report, and the largest allocations of one iteration.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}
events=$(mktemp)
trap 'rm -f "$events"' EXIT

"$memest" --model job.cfg --events "$events"

echo
echo "The five largest allocations of iteration 1 (bytes, category, phase, module, op):"
awk -F '\t' '$1 == "alloc" { print $2 "\t" $5 "\t" $6 "\t" $7 "\t" $8 }' "$events" |
    sort -rn | sed 5q
