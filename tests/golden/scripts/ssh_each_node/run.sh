#!/bin/bash
set -eu
args="--num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 \
--max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 64 \
--train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000 --tokenizer-type NullTokenizer"
rank=0
for node in alpha beta; do
    ssh -o StrictHostKeyChecking=no "user@$node" "nvidia-smi -pm 1; ulimit -l unlimited
        torchrun --nnodes 2 --node_rank $rank --nproc-per-node 4 pretrain_gpt.py $args" &
    rank=$((rank + 1))
done
wait
