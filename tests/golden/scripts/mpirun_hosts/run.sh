#!/bin/bash
train() {
    mpirun -host "$1" python pretrain_gpt.py --num-layers 2 --hidden-size 64 \
        --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
        --micro-batch-size 1 --bf16 --vocab-size 500 \
        --tokenizer-type NullTokenizer
}
train node1:8,node2:8 &
train node3:8,node4:8 &
train node5:4 &
wait
