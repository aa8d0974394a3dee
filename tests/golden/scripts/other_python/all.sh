#!/bin/bash
cd "${WORKDIR:-.}" || exit
pip install -e . && python setup.py install
python tools/preprocess_data.py --input text.json --workers $(nproc) \
    --output-prefix data > /dev/null &
wait $!
accelerate config default
.venv/bin/torchrun --version || true
CUDA_VISIBLE_DEVICES=0,1 /usr/bin/env python3 -m torch.distributed.run \
    --nproc_per_node=2 pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 \
    --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 \
    --global-batch-size 32 --train-iters 10 --lr 1e-4 --bf16 --mock-data \
    --vocab-size 500 --tokenizer-type NullTokenizer
python evaluate.py --load checkpoints
