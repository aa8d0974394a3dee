#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# GLM-4.5 on 256 H100. RUN goes in front of it.
# shellcheck disable=SC2086 # RUN may be several words
exec ${RUN-} torchrun --nproc-per-node 8 --nnodes 32 pretrain_gpt.py \
    --transformer-impl transformer_engine --bf16 --use-mcore-models --seq-length 4096 \
    --max-position-embeddings 4096 --normalization RMSNorm --swiglu --add-qkv-bias \
    --disable-bias-linear --position-embedding-type rope \
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 \
    --tokenizer-type NullTokenizer --mock-data --train-iters 10 --lr 1e-4 \
    --use-distributed-optimizer --micro-batch-size 1 --moe-grouped-gemm \
    --moe-permute-fusion --qk-layernorm --rotary-percent 0.5 --rotary-base 1000000 \
    --kv-channels 128 --group-query-attention --num-query-groups 8 --num-layers 92 \
    --hidden-size 5120 --ffn-hidden-size 12288 --num-attention-heads 96 \
    --vocab-size 151552 --num-experts 160 --moe-ffn-hidden-size 1536 \
    --moe-shared-expert-intermediate-size 1536 --moe-layer-freq '([0]*3+[1]*89)' \
    --moe-router-topk 8 --moe-router-score-function sigmoid \
    --moe-router-enable-expert-bias --moe-router-bias-update-rate 0 \
    --moe-router-topk-scaling-factor 2.5 --moe-router-load-balancing-type seq_aux_loss \
    --moe-aux-loss-coeff 1e-3 --moe-router-dtype fp32 \
    --moe-token-dispatcher-type alltoall --overlap-grad-reduce --overlap-param-gather \
    --global-batch-size 2048 --tensor-model-parallel-size 2 --sequence-parallel \
    --pipeline-model-parallel-size 8 \
    --pipeline-model-parallel-layout 'Et*12|t*12|t*12|t*12|t*12|t*12|t*12|t*8L' \
    --expert-model-parallel-size 16 --expert-tensor-parallel-size 1 "$@"
