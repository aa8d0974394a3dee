#!/bin/bash
# What a launcher starts knows how many there are of it.
set -u
torchrun --nnodes 2 --nproc_per_node 4 --no-python bash -c \
    'exec "$@" --tensor-model-parallel-size $LOCAL_WORLD_SIZE \
        --global-batch-size $((WORLD_SIZE / LOCAL_WORLD_SIZE))' _ \
    python pretrain_gpt.py --num-layers 2 --hidden-size 64 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer
