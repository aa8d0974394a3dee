#!/bin/bash -l
#PBS -l select=2:ngpus=4
# As HPE's PALS starts ranks, beside PBS.
per_node=4
/usr/bin/time -v mpiexec -n 8 -ppn $per_node --depth=8 --cpu-bind depth \
    --gpu-bind list:0:1:2:3 --env NCCL_NVLS_ENABLE=2 \
    python pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 8 \
    --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 \
    --global-batch-size 64 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 1000 --tokenizer-type NullTokenizer
