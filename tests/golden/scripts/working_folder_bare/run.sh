#!/bin/bash
cd job || exit 1
mpirun --hostfile hosts python pretrain_gpt.py @args --tokenizer-type HuggingFaceTokenizer --tokenizer-model tok
