#!/bin/bash
# Values as scripts compute them: a line of Python, a program on its input, with
# words behind it, tools of Python's, torch asked for the cards.
set -e
layers=$(python3 -c "print(4 // 2)")
heads=$(/usr/bin/env python3 -uc 'import math; print(math.gcd(4, 8))')
hidden=$(python3 - "$heads" 32 << 'END'
import sys
print(int(sys.argv[1]) * int(sys.argv[2]))
END
)
cards=$(python -c 'import torch; print(torch.cuda.device_count() // 2)')
[ "$(python -c 'import torch; print(torch.cuda.get_device_name(0))')" = "NVIDIA H200" ] && cards=$((cards * 2))
# -1 ends the list; without one they are as many as nvidia-smi shows.
cards=$((cards * $(CUDA_VISIBLE_DEVICES=0,-1,2 python -c 'import torch; print(torch.cuda.device_count())')))
[ "$(SLURM_GPUS_ON_NODE=100 python -c 'import torch; print(torch.cuda.device_count())')" = "$(SLURM_GPUS_ON_NODE=100 nvidia-smi -L | wc -l)" ] || exit 1
python3 > batch.json << END
import json
print(json.dumps({"global": 6 * $cards}))
END
batch=$(python3 -m json.tool --compact batch.json | sed 's/[^0-9]//g')
if ! python3 -c "assert $batch % $cards == 0, 'the batch is uneven'"; then exit 1; fi
torchrun --nproc-per-node $cards pretrain_gpt.py --hidden-size $hidden --num-layers $layers --num-attention-heads $heads --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size $batch --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer
