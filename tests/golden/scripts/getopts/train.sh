#!/bin/sh
tp=1 model=big
while getopts m:t: option; do
    case $option in
    m) model=$OPTARG ;;
    t) tp=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ "$model" = small ]; then layers=4 hidden=256; else layers=80 hidden=8192; fi
if command -v nvidia-smi >/dev/null; then
    n=$(nvidia-smi -L | wc -l)
elif [ -n "$GPUS" ]; then
    n=$GPUS
else
    n=1
fi
exec torchrun --standalone --nproc-per-node="$n" pretrain_gpt.py --num-layers "$layers" \
    --hidden-size "$hidden" --num-attention-heads 8 --seq-length 128 \
    --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 64 \
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 1000 \
    --tokenizer-type NullTokenizer --tensor-model-parallel-size "$tp" "$@"
