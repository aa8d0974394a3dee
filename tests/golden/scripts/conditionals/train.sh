#!/bin/sh
# Plain sh.
set -eu
size=${1:-8b}
recompute=${2:-none}

if [ "$size" = 8b ]; then
    layers=4 hidden=256 tp=1
elif [ "$size" = 70b ]; then
    layers=8 hidden=512 tp=4
else
    echo "unknown size: $size" >&2
    exit 1
fi

case "$recompute" in
    full) extra="--recompute-granularity full --recompute-method uniform
                 --recompute-num-layers 1" ;;
    selective) extra="--recompute-granularity selective" ;;
    none) extra= ;;
esac

if command -v nvidia-smi > /dev/null; then
    gpus=$(nvidia-smi --query-gpu=name,memory.total,memory.free,memory.used \
        --format=csv,noheader,nounits | grep -c ", [0-9]*, [0-9]*, 0$")
else
    gpus=1
fi
pip install -q -r requirements.txt
test "$gpus" -ge "$tp" || exit 1
ulimit -n 200 || true
set -- --num-layers $layers --hidden-size $hidden --num-attention-heads 8 \
    --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 \
    --global-batch-size 8 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 1000 --tokenizer-type NullTokenizer
exec torchrun --standalone --nproc-per-node "$gpus" pretrain_gpt.py "$@" \
    --tensor-model-parallel-size $tp $extra
