#!/bin/bash
set -e
source activate 2>/dev/null || true
conda activate megatron
export NPROC_PER_NODE=4 NNODES=${SLURM_NNODES:-1}
export PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'
megatron sft "$1"
