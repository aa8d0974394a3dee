#!/bin/bash
# shellcheck disable=SC1091 # it is written on the way
printf 'tokenizer=NullTokenizer\r\n' >env.sh
. ./env.sh
torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 4 --hidden-size 256 \
    --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128 \
    --micro-batch-size 1 --global-batch-size 64 --train-iters 10 --lr 1e-4 --bf16 \
    --mock-data --vocab-size 1000 --tokenizer-type "$tokenizer"
