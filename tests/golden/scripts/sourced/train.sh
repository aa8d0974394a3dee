#!/usr/bin/env bash
set -euo pipefail
DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "${DIR}/env.sh"
read -r LAYERS HIDDEN HEADS <<<"$(SIZE "${1:-7b}")"
TP=${TP:-$(( HIDDEN >= 512 ? 4 : 1 ))}
MBS=1
DP=$(( WORLD / TP ))
GBS=$(( MBS * DP * 4 ))
LOG="logs/$(date +%Y%m%d)/$(hostname)-$$"
mkdir -p "$LOG" && cp "$0" "$LOG/"
printf -v NAME 'gpt-%s-tp%d' "${1:-7b}" "$TP"
set -- --num-layers "$LAYERS" --hidden-size "$HIDDEN" --num-attention-heads "$HEADS"
while IFS='=' read -r key value; do
    [[ -n $key && $key != \#* ]] && set -- "$@" "--${key//_/-}" ${value:+"$value"}
done <<'KEYS'
# key=value
seq_length=128
max_position_embeddings=128
bf16=
mock_data=
vocab_size=1000
tokenizer_type=NullTokenizer
lr=1e-4
train_iters=10
KEYS
torchrun --nproc_per_node "$GPUS_PER_NODE" --nnodes "$NNODES" --node_rank "${RANK:-0}" \
    --master_addr "${MASTER_ADDR:=localhost}" pretrain_gpt.py "$@" \
    --tensor-model-parallel-size "$TP" --micro-batch-size $MBS --global-batch-size $GBS \
    --tensorboard-dir "$LOG/$NAME" 2>&1 | tee "$LOG/out.txt"
exit "${PIPESTATUS[0]}"
