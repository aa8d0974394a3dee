#!/bin/bash
srun -N 2 --ntasks-per-node=1 --gpus-per-node=h100:8 bash -c '
    torchrun --nnodes=${SLURM_NNODES:-1} --node_rank=${SLURM_NODEID:-0} --nproc-per-node=${SLURM_GPUS_ON_NODE:-1} \
        pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer'
