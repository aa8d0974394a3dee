#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How long `memest search` takes: Llama 3 70B on 512 H100 with 1,024 samples a step,
# all candidates weighed by their bounds alone; those without context parallelism,
# until all is decided or SECONDS are over, on one thread and with 2 and 4 processes;
# all of them; DeepSeek-V3 on 2,048 H100 with 8,192 samples.
# `run.sh MEMEST [SECONDS [CALCULON]]`; nothing fails over the figures. CALCULON is
# a checkout of https://github.com/calculon-ai/calculon, whose own search then runs in
# between for 20 s of CPU.
#
# decided: refused by the framework, ruled out by bounds, or simulated.
set -eu
memest=${1?usage: run.sh MEMEST [SECONDS [CALCULON]]}
budget=${2:-300}
calculon=${3:-}
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# search NAME BUDGET JOB… -- WORDS…: WORDS launch the program
search() {
    name=$1
    limit=$2
    shift 2
    job=
    while [ "$1" != -- ]; do
        job="$job $1"
        shift
    done
    shift
    begin=$(date +%s.%N)
    # shellcheck disable=SC2086 # words of a job have no blanks
    /usr/bin/time -f "%U %S" -o "$out/time" "$@" search $job \
        --device h100-80gb --threads 1 --budget "$limit" >"$out/text"
    end=$(date +%s.%N)
    echo "$name: $(echo "$begin $end" | awk '{ printf "%.2f s", $2 - $1 }')," \
        "$(awk '{ printf "%.2f s of CPU", $1 + $2 }' "$out/time")," \
        "$(sed -n 's/^  \(.* candidates: .*\)/\1/p' "$out/text")"
}

dense='--model llama-3-70b --gpus 512 --set train.global_batch_size=1024
    --space data_parallel=ddp,distributed'
one_context="$dense --space parallel.context=1"
experts='--model deepseek-v3 --gpus 2048 --set train.global_batch_size=8192'

grep -m 1 'model name' /proc/cpuinfo || true
# shellcheck disable=SC2086 # as above
{
    search 'bounds alone' 0.001 $dense -- "$memest"
    search 'one context' "$budget" $one_context -- "$memest"
    if [ -n "$calculon" ]; then
        python3 "$here/calculon.py" "$calculon" 20
    fi
    if command -v mpirun >/dev/null; then
        for n in 2 4; do
            search "one context, $n processes" "$budget" $one_context -- \
                mpirun -n "$n" "$memest"
        done
    fi
    search 'all of it' "$budget" $dense -- "$memest"
    search 'DeepSeek-V3, bounds alone' 0.001 $experts -- "$memest"
    search 'DeepSeek-V3' "$budget" $experts -- "$memest"
}
