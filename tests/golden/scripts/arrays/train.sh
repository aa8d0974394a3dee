#!/bin/bash
# A small GPT on one node; sizes can be set from outside.
set -euo pipefail

export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_IB_SL=1

GPUS_PER_NODE=${GPUS_PER_NODE:-8}
NUM_NODES=${NUM_NODES:-1}
TP=${TP:-2}
WORLD=$((GPUS_PER_NODE * NUM_NODES))
MICRO=1
GLOBAL=$((WORLD / TP * MICRO * 4))
OUT=$PWD/runs/$(date +%Y%m%d)-tp${TP}

module load cuda
readarray -t HOSTS < <(seq -f 'node%g' "$NUM_NODES")
NUM_NODES=${#HOSTS[@]}
echo "on ${HOSTS[*]}" > /dev/stderr
rm -rf "$OUT"
mkdir -p "$OUT"/{logs,checkpoints}

DISTRIBUTED=(
    --nproc_per_node "$GPUS_PER_NODE"
    --nnodes "$NUM_NODES"
    --node_rank 0
    --master_addr localhost
    --master_port 6000
)
MODEL=(
    --num-layers 4
    --hidden-size 256
    --num-attention-heads 8
    --seq-length 128
    --max-position-embeddings 128
)
TRAINING=(
    --micro-batch-size "$MICRO"
    --global-batch-size "$GLOBAL"
    --train-iters 100
    --lr 1.0e-4
    --bf16
)
DATA=(--mock-data --vocab-size 1000 --tokenizer-type NullTokenizer)

torchrun "${DISTRIBUTED[@]}" pretrain_gpt.py \
    "${MODEL[@]}" \
    "${TRAINING[@]}" \
    "${DATA[@]}" \
    --tensor-model-parallel-size "$TP" \
    --save "$OUT/checkpoints" --save-interval 1000 2>&1 | tee "$OUT/logs/train.log"
