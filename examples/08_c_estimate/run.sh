#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build estimate.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" estimate > "$out"
cat "$out"
grep -q '^rank 0 is the worst: .* GiB, go$' "$out"
