#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build trackers.c against an installed memest and look for what it must say.
set -eu
cd "$(dirname "$0")"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
../build_and_run "$PWD" trackers > "$out"
cat "$out"
grep -q '^  Parameter *[1-9]' "$out"
grep -q '^Mlp.up: ' "$out"
grep -q '^stopped: .*its hook alloc returned 1 in iteration 0, backward' "$out"
grep -q '^1. down.forward._foreach_sqrt.default_0: [1-9]' "$out"
