#!/bin/bash
srun -n 4 uv run --with rich \
    pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
    --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 \
    --global-batch-size 8 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 1000 --tokenizer-type NullTokenizer
