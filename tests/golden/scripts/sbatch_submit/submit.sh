#!/usr/bin/env bash
set -euo pipefail
nodes=$1
job=$(sbatch --parsable --nodes "$nodes" --gres gpu:l40s:2 << EOF
#!/bin/bash
#SBATCH --ntasks-per-node=2
#SBATCH --array=3-8%2
echo "task \$SLURM_ARRAY_TASK_ID"
srun python pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 \
    --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 \
    --global-batch-size 32 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 500 --tokenizer-type NullTokenizer     --global-batch-size 36 --seed \$SLURM_ARRAY_TASK_ID
EOF
)
echo "submitted $job"
squeue -j "$job"
