#!/bin/bash
job="torchrun --nproc-per-node 8 pretrain_gpt.py \
    --num-layers 2 --hidden-size 128 --num-attention-heads 4 \
    --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 \
    --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 500 --tokenizer-type NullTokenizer"
echo "$job --seed 1" | ssh worker
echo "$job --seed 2" | pssh -I -H worker
pdsh -w worker <<< "$job --seed 3"
singularity shell --nv image.sif <<< "$job --seed 4"
sudo -iu me <<< "$job --seed 5"
sudo --user me -s <<< "$job --seed 6"
tmux new-session -d -s train <<< "$job --seed 7"
pssh -H worker <<< "$job --seed 8"
ssh worker
singularity shell image.sif
sudo -i
