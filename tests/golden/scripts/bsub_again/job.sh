#!/bin/bash
#BSUB -n 2
set -euo pipefail
bsub -n 2 bash "$0"
if [ -z "${LSB_DJOB_NUMPROC:-}" ]; then
    exit 0
fi
mpirun python pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 \
    --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 \
    --global-batch-size 32 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 500 --tokenizer-type NullTokenizer --seed 3
