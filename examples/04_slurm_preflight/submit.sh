#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Submit a job if it fits. MEMEST, SBATCH and LIMIT are for trying it out.
# shellcheck disable=SC2046,SC2086 # flags and SBATCH are several words
set -eu
cd "$(dirname "$0")"

code=0
"${MEMEST:-memest}" check --strict --memory-limit "${LIMIT:-70GiB}" \
    --set impl.core_attention=sdpa_flash -- \
    torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py $(cat flags) "$@" ||
    code=$?
case $code in
0) ${SBATCH:-sbatch} --nodes 2 --gpus-per-node 8 job.sh "$@" ;;
3) echo "not submitted: it does not fit" ;;
4) echo "not submitted: too much of it is not modelled" ;;
*) echo "not submitted: memest says why" ;;
esac
exit "$code"
