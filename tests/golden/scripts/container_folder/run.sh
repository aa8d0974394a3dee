#!/bin/bash
set -e
args=(--num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 64
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000
    --tokenizer-type NullTokenizer)
docker run --rm --gpus all -v "$PWD:/data" image sh -c \
    "cd /opt/Megatron-LM && torchrun --nproc-per-node 4 pretrain_gpt.py ${args[*]}"
