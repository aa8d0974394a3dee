#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The report of a launch command, and what happens to a flag that is not modelled.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}

RUN="$memest estimate --set impl.core_attention=sdpa_flash --" ./launch.sh |
    sed '/^Modules/,$d'

echo "The same job with a flag that memest does not model, and --strict:"
code=0
RUN="$memest estimate --strict --set impl.core_attention=sdpa_flash --" \
    ./launch.sh --fp4-format e2m1 || code=$?
echo "exit code $code"
[ "$code" -eq 2 ]
