#!/bin/bash
CHECKPOINT=<path of the checkpoint>
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --load "$CHECKPOINT"
