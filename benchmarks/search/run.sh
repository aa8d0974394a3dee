#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How long `memest search` takes over Llama 3 70B on 512 H100: all candidates
# weighed by their bounds alone, then simulated until SECONDS are over, on one
# thread and with 2 and 4 processes. `run.sh MEMEST [SECONDS]`; nothing fails
# over the figures.
#
# decided: refused by the framework, ruled out by bounds, or simulated.
set -eu
memest=${1?usage: run.sh MEMEST [SECONDS]}
budget=${2:-300}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# search NAME BUDGET WORDS…: WORDS launch the program
search() {
    name=$1
    limit=$2
    shift 2
    begin=$(date +%s.%N)
    "$@" search --model llama-3-70b --gpus 512 --device h100-80gb \
        --set train.global_batch_size=1024 \
        --space data_parallel=ddp,distributed --threads 1 \
        --budget "$limit" >"$out/text"
    end=$(date +%s.%N)
    echo "$name: $(echo "$begin $end" | awk '{ printf "%.2f s", $2 - $1 }')," \
        "$(sed -n 's/^  \(.* candidates: .*\)/\1/p' "$out/text")"
}

grep -m 1 'model name' /proc/cpuinfo || true
search 'bounds alone' 0.001 "$memest"
search 'one thread' "$budget" "$memest"
if command -v mpirun >/dev/null; then
    for n in 2 4; do
        search "$n processes" "$budget" mpirun -n "$n" "$memest"
    done
fi
