#!/bin/bash
set -eu
data=/scratch/$USER/$LOGNAME
torchrun --nproc-per-node 2 pretrain_gpt.py --num-layers 2 --hidden-size 512 \
    --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 \
    --vocab-size 32000 --micro-batch-size 1 --global-batch-size 8 --bf16 \
    --data-path "$data"
