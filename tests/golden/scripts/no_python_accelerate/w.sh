#!/bin/bash
echo rank $LOCAL_RANK
exec python -u pretrain_gpt.py "$@"
