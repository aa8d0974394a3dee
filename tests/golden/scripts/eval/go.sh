#!/bin/bash
NAME=$1
TP=$2
OPTIONS=" \
    --tensor-model-parallel-size $TP \
    --sequence-parallel \
    --num-layers 4 \
    --hidden-size 256 \
    --num-attention-heads 8 \
    --seq-length 128 \
    --max-position-embeddings 128 \
    --micro-batch-size 1 \
    --global-batch-size 16 \
    --train-iters 10 \
    --lr 1e-4 \
    --bf16 \
    --mock-data --vocab-size 1000 --tokenizer-type NullTokenizer"
if [ "$NAME" = llama ]; then
    OPTIONS="$OPTIONS --swiglu --normalization RMSNorm --disable-bias-linear"
    OPTIONS="$OPTIONS --untie-embeddings-and-output-weights"
fi
[ -d /no/such/checkpoint ] && OPTIONS="$OPTIONS --load /no/such/checkpoint"
run_cmd="torchrun --nproc_per_node=8 --nnodes=1 ./pretrain_gpt.py ${OPTIONS}"
echo "$run_cmd"
eval "$run_cmd"
set +x
