#!/bin/bash
set -e
cd "$(mktemp -d)"
for host in alpha beta gamma; do echo "$host slots=4"; done > hostfile
deepspeed --hostfile hostfile --exclude gamma:3 --master_addr alpha pretrain_gpt.py \
    --num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 \
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 66 \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000 \
    --tokenizer-type NullTokenizer
