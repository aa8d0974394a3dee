#!/bin/bash
flags="--num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 64
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000
    --tokenizer-type NullTokenizer"
# Each comes later than the next one.
for ranks in 8 4 2 1; do
    (
        for ((i = 0; i < ranks * 2000; i++)); do :; done
        torchrun --nproc-per-node $ranks pretrain_gpt.py $flags
    ) &
done
wait
