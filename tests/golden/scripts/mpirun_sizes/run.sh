#!/bin/bash
set -u
words="--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --micro-batch-size 1 --bf16 --vocab-size 500
    --tokenizer-type NullTokenizer"
export words
open='set -u; export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
    python pretrain_gpt.py $words --seed $OMPI_COMM_WORLD_LOCAL_SIZE$OMPI_COMM_WORLD_LOCAL_RANK'
hydra='set -u; export RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE
    python pretrain_gpt.py $words --seed $MPI_LOCALNRANKS$MPI_LOCALRANKID'
printf 'node1 slots=6\nnode2 slots=2\n' >hosts
mpirun -np 8 bash -c "$open"
mpirun -np 8 --npernode 4 bash -c "$open"
mpirun -H node1:2,node2:2 -x A=b -- bash -c "$open"
orterun --hostfile hosts bash -c "$open\${PMI_SIZE:-}"
mpiexec -n 8 -ppn 4 bash -c "$hydra"
mpiexec.hydra -n 8 bash -c "$hydra"
jsrun -n 4 -a 2 -r 2 bash -c "$open"
mpirun -np 2 --npernode 1 bash -c 'torchrun --nnodes $OMPI_COMM_WORLD_SIZE --nproc-per-node 4 \
    --node_rank $OMPI_COMM_WORLD_RANK pretrain_gpt.py $words --seed $OMPI_COMM_WORLD_LOCAL_SIZE'
