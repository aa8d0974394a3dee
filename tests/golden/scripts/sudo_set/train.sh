#!/bin/bash
sudo PYTORCH_CUDA_ALLOC_CONF=no_such_key:1 torchrun --nproc-per-node=2 pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer
