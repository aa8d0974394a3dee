#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build compare.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" compare > "$out"
cat "$out"
grep -q '^[1-9]=* *1f1b  *[1-9][0-9]* requested, .* 4.00 micro-batches in flight' "$out"
grep -q 'interleaved:2  odd .*cannot run: parallel.tensor = 3 does not divide' "$out"
grep -q '^first of 9: its worst rank peaks in a ' "$out"
