#!/bin/bash
# The folder is the other machine's.
ssh -nT worker0 << EOF
torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 2
EOF
node=0
for host in worker0 worker1; do
    ssh -Tp 22 -o StrictHostKeyChecking=no "$host" << EOF &
cd /nowhere/megatron || exit 1
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 2 --node_rank $node --nproc_per_node 4 pretrain_gpt.py \\
    --num-layers 2 --hidden-size 128 --num-attention-heads 4 \\
    --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 \\
    --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data \\
    --vocab-size 500 --tokenizer-type NullTokenizer
EOF
    node=$((node + 1))
done
wait
