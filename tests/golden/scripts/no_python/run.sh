#!/bin/bash
torchrun --nproc_per_node 4 --no-python \
    nsys profile -o job.%p bash -c 'echo rank $LOCAL_RANK; exec "$@"' _ \
    python pretrain_gpt.py --num-layers 2 --hidden-size 64 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer
