#!/usr/bin/env bash
set -eu
declare -A hidden=([small]=64 [big]=128) layers=([small]=1 [big]=2)
size=${1:?small or big}
args=(--hidden-size "${hidden[$size]}" --num-layers "${layers[$size]}")
args+=(--tensor-model-parallel-size 2)
command=$(printf '%q ' torchrun --nproc-per-node=8 --nnodes=2 pretrain_gpt.py "${args[@]}" --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer)
eval "$command" 2>&1 | tee -a log.txt
