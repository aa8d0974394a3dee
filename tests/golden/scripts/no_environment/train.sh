#!/bin/bash
set -e
source /none/such/bin/activate train
torchrun pretrain_gpt.py
