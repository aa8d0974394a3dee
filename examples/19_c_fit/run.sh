#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build fit.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" fit > "$out"
cat "$out"
grep -q '^does not fit: rank 0 takes [0-9]* bytes of 943718400$' "$out"
grep -q '^[1-9]=* micro-batch 1: .*: --micro-batch-size 1$' "$out"
grep -q '^again, with .*: the same bytes, and it fits$' "$out"
