#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build schedule.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" schedule > "$out"
cat "$out"
grep -q '^rank 0: 0F0 0F1 0F2 0F3 0B0 0F4 0B1' "$out"
