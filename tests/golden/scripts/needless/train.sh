#!/bin/bash
torchrun --nproc-per-node 1 pretrain_gpt.py --num-layers 1 --hidden-size 64 \
    --num-attention-heads 2 --num-query-groups 1 --seq-length 64 \
    --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 1 \
    --vocab-size 1000 --tokenizer-type NullTokenizer --bf16 --mock-data \
    --fp8-recipe tensorwise --fp8-amax-history-len 16 \
    --recompute-modules mlp --moe-router-topk 4 --moe-grouped-gemm \
    --cuda-graph-modules attn --q-lora-rank 128 --mtp-loss-scaling-factor 0.3
