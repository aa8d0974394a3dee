#!/bin/bash
accelerate launch --num_processes 4 --no_python ./w.sh \
    --num-layers 2 --hidden-size 64 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer
