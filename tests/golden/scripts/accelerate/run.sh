#!/bin/bash
retry() { local n=0; until "$@"; do n=$((n + 1)); [ $n -lt 3 ] || return 1; sleep 30; done; }
trap 'echo stopped' INT TERM
pip install -q -r requirements.txt
retry accelerate launch --multi_gpu --mixed_precision bf16 pretrain_gpt.py \
    --num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 \
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 64 \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000 \
    --tokenizer-type NullTokenizer
