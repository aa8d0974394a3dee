#!/bin/bash
set -eu
flux resource list
flux alloc -N 2 --exclusive bash <<'IN'
true
IN
flux run -N 2 --tasks-per-node=4 --gpus-per-node 4 --env=A=B --env=-C -o mpibind=off \
    bash -c 'RANK=$FLUX_TASK_RANK exec python pretrain_gpt.py "$@"' _ \
    --num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 \
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 64 \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000 \
    --tokenizer-type NullTokenizer
