#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Mixtral 8x7B on 64 H100. RUN goes in front of it.
# shellcheck disable=SC2086 # RUN may be several words
exec ${RUN-} torchrun --nproc-per-node 8 --nnodes 8 pretrain_gpt.py \
    --transformer-impl transformer_engine --bf16 --use-mcore-models \
    --disable-bias-linear --seq-length 4096 --max-position-embeddings 32768 \
    --no-masked-softmax-fusion --no-position-embedding --normalization RMSNorm \
    --position-embedding-type rope --swiglu --untie-embeddings-and-output-weights \
    --group-query-attention --num-query-groups 8 --rotary-base 1000000 --num-experts 8 \
    --moe-router-topk 2 --moe-router-load-balancing-type aux_loss \
    --moe-aux-loss-coeff 1e-2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
    --overlap-param-gather --overlap-grad-reduce --tokenizer-type NullTokenizer \
    --vocab-size 32000 --mock-data --micro-batch-size 1 --attention-dropout 0 \
    --hidden-dropout 0 --lr 1e-4 --train-iters 500000 --use-distributed-optimizer \
    --sequence-parallel --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
    --num-attention-heads 32 --global-batch-size 256 --tensor-model-parallel-size 1 \
    --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 "$@"
