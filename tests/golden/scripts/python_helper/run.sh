#!/bin/bash
set -eu
source <(python3 /home/somebody/training/scripts/of/the/second/corpus/and/its/settings/print_settings.py)
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers "$LAYERS" --hidden-size 64
