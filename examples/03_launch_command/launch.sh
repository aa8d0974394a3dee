#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The job's own launch command: 2 nodes of 8 GPUs. RUN goes in front of it.
# shellcheck disable=SC2086 # RUN may be several words
exec ${RUN-} torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py \
    --transformer-impl local --bf16 \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
    --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
    --seq-length 8192 --max-position-embeddings 8192 \
    --position-embedding-type rope --no-rope-fusion \
    --normalization RMSNorm --swiglu --disable-bias-linear \
    --untie-embeddings-and-output-weights \
    --attention-dropout 0 --hidden-dropout 0 \
    --tokenizer-type NullTokenizer --vocab-size 128256 \
    --micro-batch-size 1 --global-batch-size 64 \
    --tensor-model-parallel-size 4 --sequence-parallel \
    --use-distributed-optimizer --recompute-granularity selective \
    --no-masked-softmax-fusion --no-gradient-accumulation-fusion \
    --train-iters 1000 --lr 3e-4 --log-interval 10 "$@"
