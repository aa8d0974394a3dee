#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#SBATCH --job-name=llama-3-8b --time=12:00:00 --ntasks-per-node=1
# The job that submit.sh stands in front of; your own goes here.
# shellcheck disable=SC2046 # flags are several words
set -eu
srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 8 \
    --rdzv-backend c10d --rdzv-endpoint "$(hostname):29500" \
    pretrain_gpt.py $(cat flags) "$@"
