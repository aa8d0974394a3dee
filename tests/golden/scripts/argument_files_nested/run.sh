#!/bin/bash
torchrun --nproc-per-node 2 pretrain_gpt.py @job.args
