#!/bin/bash
for tp in 1 2 4; do
    for mbs in 1 2; do
        torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 \
            --hidden-size 128 --num-attention-heads 4 --seq-length 64 \
            --max-position-embeddings 64 --global-batch-size 16 \
            --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 \
            --tokenizer-type NullTokenizer --micro-batch-size $mbs \
            --tensor-model-parallel-size $tp || exit
        sleep 600
    done
done
