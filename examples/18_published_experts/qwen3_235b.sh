#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Qwen3 235B-A22B on 256 H100, BF16. RUN goes in front of it.
# shellcheck disable=SC2086 # RUN may be several words
exec ${RUN-} torchrun --nproc-per-node 8 --nnodes 32 pretrain_gpt.py \
    --transformer-impl transformer_engine --bf16 --use-mcore-models --seq-length 4096 \
    --max-position-embeddings 4096 --normalization RMSNorm --swiglu \
    --disable-bias-linear --position-embedding-type rope \
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 \
    --tokenizer-type NullTokenizer --mock-data --train-iters 10 --lr 1e-4 \
    --use-distributed-optimizer --micro-batch-size 1 --moe-grouped-gemm \
    --moe-permute-fusion --qk-layernorm --group-query-attention --num-query-groups 4 \
    --kv-channels 128 --rotary-base 1000000 --vocab-size 151936 --num-experts 128 \
    --moe-router-topk 8 --moe-router-load-balancing-type aux_loss \
    --moe-aux-loss-coeff 1e-3 --moe-router-dtype fp32 --moe-router-fusion \
    --moe-router-force-load-balancing --cross-entropy-loss-fusion \
    --cross-entropy-fusion-impl te --overlap-grad-reduce --overlap-param-gather \
    --num-layers 94 --hidden-size 4096 --ffn-hidden-size 12288 \
    --num-attention-heads 64 --moe-ffn-hidden-size 1536 --global-batch-size 8192 \
    --tensor-model-parallel-size 2 --sequence-parallel \
    --pipeline-model-parallel-size 8 --num-virtual-stages-per-pipeline-rank 4 \
    --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split \
    --expert-model-parallel-size 32 --expert-tensor-parallel-size 1 \
    --moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm \
    --delay-wgrad-compute "$@"
