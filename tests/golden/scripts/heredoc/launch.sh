#!/bin/bash
set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat > "$dir/hosts" << EOF
$(for i in 1 2 3 4; do echo "node$i slots=4"; done)
EOF
ranks=$(awk -F= '{ n += $2 } END { print n }' "$dir/hosts")

cat > "$dir/inner.sh" << 'EOF'
#!/bin/bash
exec python pretrain_gpt.py \
    --num-layers 2 --hidden-size 128 --num-attention-heads 4 \
    --seq-length 64 --max-position-embeddings 64 \
    --micro-batch-size 1 --global-batch-size 32 --train-iters 10 --lr 1e-4 \
    --mock-data --vocab-size 500 --tokenizer-type NullTokenizer "$@"
EOF
chmod +x "$dir/inner.sh"

cat > "$dir/settings.json" << EOF
{"fp16": {"enabled": true}, "steps": 10}
EOF
grep -q '"enabled": true' "$dir/settings.json" && precision=--fp16

mpirun -np "$ranks" --hostfile "$dir/hosts" -x NCCL_DEBUG=WARN \
    "$dir/inner.sh" $precision --pipeline-model-parallel-size 2
