#!/bin/bash
srun -N $NODES -n $((NODES * 8)) python pretrain_gpt.py --num-layers 2 --hidden-size 128 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 \
    --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer
