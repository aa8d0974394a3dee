#!/bin/bash
# Commands of a file, columns of a list, pairs.
flags="--num-layers 2 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer"
printf 'torchrun --nproc-per-node %d pretrain_gpt.py --hidden-size 64 %s\n' 1 "$flags" 2 "$flags" > commands
echo "# the last" >> commands
parallel --jobs=8 < commands
printf 'runs/a.1,64\nruns/b.2,128\n' > sizes
parallel -a sizes --colsep , "torchrun --nproc-per-node 4 pretrain_gpt.py --hidden-size {2} $flags --save {1/.} --save-interval 5"
parallel -I% torchrun --nproc-per-node 4 pretrain_gpt.py --hidden-size 64 "$flags" --seed % ::: "$((40 + 2))"
parallel torchrun --nproc-per-node {-2} pretrain_gpt.py --hidden-size {-1} "$flags" ::: 4 8 :::+ 256 512
parallel -N 2 "torchrun --nproc-per-node 4 pretrain_gpt.py --hidden-size {1} $flags --seed {2}" ::: 64 7 128 8
