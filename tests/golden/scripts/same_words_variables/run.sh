#!/bin/bash
# Two jobs: the allocator's settings are none of the words. Ranks that are started one
# by one are one job, whatever card each has.
job=(
    --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48
    --train-iters 10 --lr 1e-4 --bf16 --mock-data
    --tokenizer-type NullTokenizer --vocab-size 500
)
export WORLD_SIZE=4
for rank in 0 1 2 3; do
    CUDA_VISIBLE_DEVICES=$rank RANK=$rank python pretrain_gpt.py "${job[@]}"
done
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
python pretrain_gpt.py "${job[@]}"
