#!/bin/bash
set -e
source=$PWD
work=$(mktemp -d)
mkdir -p "$work/own"
cp "$source/five.model" "$work/own/tokenizer.model"
ln -s "$work/own" "$work/model"
cd "$work"
torchrun --nproc-per-node 4 pretrain_gpt.py \
    --num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 \
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 64 \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model model
