#!/bin/bash
JOB='--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer'
mpirun -n 2 bash -c "python pretrain_gpt.py $JOB" : -n 6 bash -c "python pretrain_gpt.py $JOB"
