#!/bin/bash
export NCCL_NVLS_ENABLE=2
exec python -u pretrain_gpt.py "$@"
