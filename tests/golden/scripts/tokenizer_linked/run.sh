#!/bin/bash
set -e
cd "$(dirname "$0")"
mkdir -p tok copied
ln -s ../kept/tokenizer.json tok/tokenizer.json
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --tokenizer-type HuggingFaceTokenizer --tokenizer-model tok
echo '{"model": {"vocab": {"a": 0, "b": 1, "c": 2}}}' > copied/tokenizer.json && cd copied
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --tokenizer-type HuggingFaceTokenizer --tokenizer-model .
