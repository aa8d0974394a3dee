#!/bin/bash
trap 'rm -rf "$scratch"' EXIT
scratch=$(mktemp -d)
nodes=1 tensor=1
while [[ $# -gt 0 ]]; do
    case $1 in
    --nodes) nodes=$2; shift 2 ;;
    --tp=*) tensor=${1#*=}; shift ;;
    --) shift; break ;;
    *) echo "unknown $1" >&2; exit 64 ;;
    esac
done
model() { local -n out=$1; out=(--hidden-size $((64 * 2)) --num-layers 2); }
model words
exec timeout --signal=INT 23h torchrun --nnodes "$nodes" --nproc-per-node 8 pretrain_gpt.py "${words[@]}" \
    --tensor-model-parallel-size "$tensor" --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer "$@"
