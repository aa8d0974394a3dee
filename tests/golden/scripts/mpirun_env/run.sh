#!/bin/bash
set -e
HOSTS=(alpha beta)
for h in "${HOSTS[@]}"; do echo "$h slots=8"; done > hostfile
NP=$(awk -F= '{ n += $2 } END { print n }' hostfile)
ARGS=(
    --num-layers 4 --hidden-size 256 --num-attention-heads 8
    --pipeline-model-parallel-size 2
    --seq-length 128 --max-position-embeddings 128
    --micro-batch-size 1 --global-batch-size 64 --train-iters 10 --lr 1e-4
    --bf16 --mock-data --vocab-size 1000 --tokenizer-type NullTokenizer
)
[[ " ${ARGS[*]} " == *" --fp8-format "* ]] || ARGS+=(--overlap-grad-reduce)
mpirun --allow-run-as-root -np "$NP" --hostfile hostfile -x NCCL_NVLS_ENABLE=2 -x PATH \
    --bind-to none bash -c 'numactl --localalloc -- python pretrain_gpt.py "$@"' _ "${ARGS[@]}"
