#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build tracker.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" tracker > "$out"
cat "$out"
grep -q '^[1-9][0-9]* allocations, 0 modules that the report has otherwise$' "$out"
