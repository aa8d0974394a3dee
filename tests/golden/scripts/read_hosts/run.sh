#!/bin/bash
set -o pipefail
total=0
while read -r host slots _; do
    [[ -z $host || $host == \#* ]] && continue
    total=$((total + ${slots#slots=}))
done < <(printf '# hosts\nnode1 slots=8\nnode2 slots=8\n')
IFS=, read -r hidden layers tensor <<<"128,2,4"
nohup mpirun -np "$total" python pretrain_gpt.py --hidden-size "$hidden" --num-layers "$layers" \
    --tensor-model-parallel-size "$tensor" --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer > out.log 2>&1 &
wait $!
