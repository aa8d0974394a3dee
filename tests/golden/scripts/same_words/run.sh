#!/bin/bash
cd "$(dirname "$0")"
for folder in one two; do
    (cd $folder && torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --tokenizer-type HuggingFaceTokenizer --tokenizer-model tok)
done
for b in 1 1 2; do
    printf '{"model": {"vocab": {"a": 0, "b": 1, "c": %d}}}' $((b + 1)) > new.json
    torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --tokenizer-type HuggingFaceTokenizer --tokenizer-model new.json
done
