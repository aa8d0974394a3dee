#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# DeepSeek-V3 on 1,024 H100, BF16. RUN goes in front of it.
# shellcheck disable=SC2086 # RUN may be several words
exec ${RUN-} torchrun --nproc-per-node 8 --nnodes 128 pretrain_gpt.py \
    --transformer-impl transformer_engine --bf16 --use-mcore-models --seq-length 4096 \
    --max-position-embeddings 4096 --normalization RMSNorm --swiglu \
    --disable-bias-linear --position-embedding-type rope \
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 \
    --tokenizer-type NullTokenizer --mock-data --train-iters 10 --lr 1e-4 \
    --use-distributed-optimizer --micro-batch-size 1 --moe-grouped-gemm \
    --moe-permute-fusion --multi-latent-attention --qk-layernorm --q-lora-rank 1536 \
    --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 \
    --kv-channels 128 --rotary-scaling-factor 40 --mscale 1.0 --mscale-all-dim 1.0 \
    --rope-type yarn --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 \
    --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 \
    --moe-router-topk 8 --moe-router-score-function sigmoid \
    --moe-router-enable-expert-bias --moe-router-bias-update-rate 1e-3 \
    --moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 1e-4 \
    --moe-router-dtype fp32 --moe-router-fusion --moe-router-force-load-balancing \
    --cross-entropy-loss-fusion --cross-entropy-fusion-impl te \
    --num-attention-heads 128 --vocab-size 129280 --num-experts 256 \
    --moe-layer-freq '([0]*3+[1]*58)' --moe-router-num-groups 8 \
    --moe-router-group-topk 4 --moe-router-topk-scaling-factor 2.5 --mtp-num-layers 1 \
    --mtp-loss-scaling-factor 0.1 --global-batch-size 16384 \
    --tensor-model-parallel-size 2 --sequence-parallel \
    --pipeline-model-parallel-size 8 --expert-model-parallel-size 64 \
    --expert-tensor-parallel-size 1 --pipeline-model-parallel-layout 'Et|(tt|)*30mL' \
    --moe-token-dispatcher-type alltoall --recompute-granularity selective \
    --recompute-modules mla_up_proj mlp --overlap-param-gather --overlap-grad-reduce "$@"
