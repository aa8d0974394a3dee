#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# submit.sh with flags that fit, do not fit, are wrong, and are not modelled.
# Nothing is submitted: SBATCH prints its command.
set -eu
cd "$(dirname "$0")"
MEMEST=${MEMEST:-../../build/release/memest}
SBATCH="echo would run: sbatch"
export MEMEST SBATCH

try() {
    expected=$1
    shift
    echo "submit.sh $*"
    code=0
    ./submit.sh "$@" 2>&1 || code=$?
    echo "exit code $code"
    echo
    [ "$code" -eq "$expected" ]
}

try 3 --tensor-model-parallel-size 1
try 0 --tensor-model-parallel-size 4 --sequence-parallel
try 2 --tensor-model-parallel-size 3
try 2 --tensor-model-parallel-size 4 --sequence-parallel --fp4-format e2m1
