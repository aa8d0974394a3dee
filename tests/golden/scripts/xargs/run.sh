#!/bin/sh
set -e
: "${GPUS:=8}"
printf '%s\n' --hidden-size 128 '--num-layers=2' > flags.txt
sed -e 's/#.*//' flags.txt | xargs torchrun --nproc-per-node "$GPUS" pretrain_gpt.py --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer
