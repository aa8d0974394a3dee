#!/bin/bash
parallel torchrun --nproc-per-node 4 pretrain_gpt.py --num-layers 2 --seed '{= $_ += 1 =}' ::: 64 128
