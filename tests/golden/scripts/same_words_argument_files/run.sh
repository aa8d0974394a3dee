#!/bin/bash
for size in small large; do
    (cd "$size" && torchrun --nproc-per-node 2 pretrain_gpt.py @arguments.txt)
done
