#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1 NVTE_FUSED_ATTN=0
mpirun -np 8 --npernode 8 -bind-to none -map-by slot python pretrain_gpt.py \
    --use-distributed-optimizer --num-layers 4 --hidden-size 1024 \
    --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 \
    --micro-batch-size 2 --global-batch-size 64 --train-iters 100 \
    --tokenizer-type NullTokenizer --vocab-size 32000 --load /d --save /d \
    --data-path /d --lr 3e-4 --bf16 --use-mcore-models --use-flash-attn \
    --recompute-activations --recompute-granularity selective \
    --transformer-impl transformer_engine --use-mpi --use-z-loss
