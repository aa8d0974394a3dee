#!/bin/bash
python3 prepare.py --out data 2>&1 | tee log
EXTRA=$(python3 extra.py --size small)
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 128 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 \
    --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer $EXTRA
