#!/bin/bash
TOKENIZER_MODEL="<Specify path to tokenizer model>"
arguments=(
    --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48
    --train-iters 10 --lr 1e-4 --bf16 --mock-data
    --tokenizer-type Llama2Tokenizer --tokenizer-model "${TOKENIZER_MODEL}"
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${arguments[@]}"
