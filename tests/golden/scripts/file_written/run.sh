#!/bin/bash
sed -i "s/pipeline_model_parallel_size: .*/pipeline_model_parallel_size: 2/" model.yaml
sed "s/_size: 1 #/_size: $1 #/" model.yaml > mine.yaml
torchrun --nproc-per-node 8 pretrain_gpt.py --yaml-cfg mine.yaml
