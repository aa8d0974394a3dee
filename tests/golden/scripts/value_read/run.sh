#!/bin/bash
read -r -p "micro-batch size? " SIZE; read OTHER < other.txt
torchrun --nproc-per-node 4 pretrain_gpt.py --num-layers 2 --hidden-size 64 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size $SIZE --bf16 --vocab-size 500
