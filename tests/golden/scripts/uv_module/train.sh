#!/bin/bash
uv run --frozen -m torch.distributed.run --nproc-per-node 4 \
    pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
    --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 \
    --global-batch-size 8 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 1000 --tokenizer-type NullTokenizer
