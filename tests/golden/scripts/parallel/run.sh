#!/bin/bash
# A sweep: a function of the script's, two lists, one within the other.
train() {
    torchrun --nproc-per-node 4 pretrain_gpt.py --hidden-size "$1" --num-layers 2 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer "${@:2}" > "log-$3.txt"
}
export -f train
parallel -j 2 --joblog log.txt --will-cite 'cd /; train {1} --tensor-model-parallel-size {2} --seed {#}' ::: 64 128 ::: 1 2
