#!/bin/bash
# One card is asked, whose answer is one line.
memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits -i 0)
cards=$(nvidia-smi --query-gpu count --format csv,noheader --id=0)
if [ "$memory" -gt 80000 ]; then
    ranks=$((cards / 2))
else
    ranks=$cards
fi
[ "$(nvidia-smi -L -i 1,3 | wc -l)" -eq 2 ] || exit 1
torchrun --nproc-per-node "$ranks" pretrain_gpt.py --num-layers 2 \
    --hidden-size 64 --num-attention-heads 4 --seq-length 128 \
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000 \
    --tokenizer-type NullTokenizer
