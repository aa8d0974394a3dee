#!/bin/bash
set -e
: "${CHECKPOINT:?must be set}"
torchrun pretrain_gpt.py
