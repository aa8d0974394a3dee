#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gpt-oss-120B on 64 H100, BF16. RUN goes in front of it.
# shellcheck disable=SC2086 # RUN may be several words
exec ${RUN-} torchrun --nproc-per-node 8 --nnodes 8 pretrain_gpt.py \
    --transformer-impl transformer_engine --bf16 --use-mcore-models --seq-length 4096 \
    --max-position-embeddings 4096 --normalization RMSNorm --quick-geglu \
    --activation-func-clamp-value 7.0 --glu-linear-offset 1.0 \
    --position-embedding-type yarn --rotary-base 150000 --rotary-scaling-factor 32 \
    --yarn-original-max-position-embeddings 4096 --softmax-type learnable \
    --window-size 127,0 --window-attn-skip-freq 2 \
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 \
    --no-bias-dropout-fusion --tokenizer-type NullTokenizer --mock-data --train-iters 10 \
    --lr 1e-4 --use-distributed-optimizer --micro-batch-size 1 --global-batch-size 1280 \
    --moe-grouped-gemm --moe-permute-fusion --group-query-attention --num-query-groups 8 \
    --kv-channels 64 --num-layers 36 --hidden-size 2880 --ffn-hidden-size 2880 \
    --moe-ffn-hidden-size 2880 --num-attention-heads 64 --vocab-size 201088 \
    --num-experts 128 --moe-router-topk 4 --moe-router-load-balancing-type none \
    --moe-router-fusion --moe-router-force-load-balancing \
    --moe-token-dispatcher-type alltoall --cross-entropy-loss-fusion \
    --cross-entropy-fusion-impl te --overlap-grad-reduce --overlap-param-gather \
    --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 \
    --expert-tensor-parallel-size 1 --recompute-granularity selective \
    --recompute-modules layernorm moe_act "$@"
