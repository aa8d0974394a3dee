#!/bin/bash
# A launcher in Python: what it starts, without descriptors of ours, is a launch.
python3 << 'END'
import subprocess, sys
job = """--hidden-size 128 --num-layers 2 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48
    --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500
    --tokenizer-type NullTokenizer""".split()
subprocess.run(["torchrun", "--nproc-per-node", "4", "pretrain_gpt.py"] + job, check=True)
subprocess.run(" ".join(["WORLD_SIZE=2 python3 pretrain_gpt.py"] + job), shell=True)
subprocess.run([sys.executable, "pretrain_gpt.py"] + job)
END
