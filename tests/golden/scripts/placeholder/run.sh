#!/bin/bash
export MICRO_BATCH="<sequences a GPU>"
arguments=(
    --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --global-batch-size 48
    --micro-batch-size "${MICRO_BATCH}" # of a rank
    --train-iters 10 --lr 1e-4 --bf16 --mock-data
    --vocab-size 500 --tokenizer-type NullTokenizer
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${arguments[@]}"
