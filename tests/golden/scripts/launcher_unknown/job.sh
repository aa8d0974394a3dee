#!/bin/bash
module load cuda
siterun --ranks 8 python pretrain_gpt.py --num-layers 4
