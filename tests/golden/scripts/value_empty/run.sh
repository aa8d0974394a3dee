#!/bin/bash
# --tokenizer-model: what $TOKENIZER names
TOKENIZER=${1#--} # none
OPTIONS=" --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 \
    --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model $TOKENIZER \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data"
torchrun --nproc-per-node 8 pretrain_gpt.py $OPTIONS
