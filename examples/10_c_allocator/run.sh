#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build allocator.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" allocator > "$out"
cat "$out"
grep -q '^freed twice: block .* is not in use' "$out"
