#!/bin/bash
layers=$(python3 -c "import no_module_of_anybody as m; print(m.layers)")
torchrun --nproc-per-node 8 pretrain_gpt.py --hidden-size 128 --num-layers ${layers:-2} --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer
