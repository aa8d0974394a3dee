#!/bin/bash
# What is started elsewhere, and what only has a Python.
conda create -y -n train python=3.10
dsh -w node1,node2 torchrun --nproc-per-node 2 pretrain_gpt.py --num-layers 2
