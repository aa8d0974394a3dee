#!/bin/bash
cd job || exit 1
torchrun --nproc-per-node 2 pretrain_gpt.py --yaml-cfg=./model.yaml
