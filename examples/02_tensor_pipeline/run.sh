#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Eight ranks in one process and, where MPI is there, in eight.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}
one=$(mktemp)
eight=$(mktemp)
trap 'rm -f "$one" "$eight"' EXIT

"$memest" --model ../../configs/gpt.cfg -o "$one"
sed -n '/^Ranks/,/^$/p' "$one"

if command -v mpirun > /dev/null; then
    # Containers: run as root, and more processes than cores.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    mpirun -n 8 "$memest" --model ../../configs/gpt.cfg -o "$eight"
    cmp "$one" "$eight"
    echo "mpirun -n 8 prints the same report, byte for byte."
fi
