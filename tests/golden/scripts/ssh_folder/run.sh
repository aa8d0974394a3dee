#!/bin/bash
# The folder is the other machine's.
set -e
node=0
for host in worker0 worker1; do
    ssh "$host" "cd /nowhere/megatron && source env.sh; torchrun --nnodes 2 --node_rank $node \
        --nproc_per_node 4 pretrain_gpt.py --num-layers 2 --hidden-size 64 \
        --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
        --micro-batch-size 1 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer" &
    node=$((node + 1))
done
wait
