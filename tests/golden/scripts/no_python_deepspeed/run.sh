#!/bin/bash
python -u -m deepspeed.launcher.runner --num_gpus 4 --no_python \
    numactl -l bash -c 'exec python -u pretrain_gpt.py "$@"' _ \
    --num-layers 2 --hidden-size 64 \
    --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer
