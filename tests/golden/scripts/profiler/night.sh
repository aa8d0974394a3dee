#!/bin/bash
source /no/such/venv/bin/activate
conda activate megatron
git pull --rebase
wget -q https://example.org/vocab.json
export PATH=/opt/conda/bin:/usr/local/cuda/bin:$PATH
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
FLAGS="--num-layers 2 --hidden-size 128 --num-attention-heads 4
  --seq-length 64 --max-position-embeddings 64 --global-batch-size 16
  --micro-batch-size 1 --train-iters 10 --lr 1e-4 --bf16 --mock-data
  --vocab-size 500 --tokenizer-type NullTokenizer"
until nohup nsys profile -s none -t nvtx,cuda -o trace -f true \
    numactl --cpunodebind=0 --membind=0 \
    python -m torch.distributed.launch --use_env --nproc_per_node=4 \
    pretrain_gpt.py $FLAGS --data-parallel-sharding-strategy no_shard > out.log 2>&1; do
    sleep 60
done &
wait
ssh head "squeue -u $USER"
