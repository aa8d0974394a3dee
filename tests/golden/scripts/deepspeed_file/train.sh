#!/bin/bash
zero=0
while [ $# -gt 0 ]; do
    case "$1" in
        --zero) zero="$2"; shift 2 ;;
        *) echo "what is $1?"; exit 1 ;;
    esac
done
config=ds_config.json
cat << EOF > $config
{
  "train_micro_batch_size_per_gpu": 2,
  "zero_optimization": { "stage": $zero },
  "bf16": { "enabled": true }
}
EOF
micro=$(sed -n 's/.*per_gpu": \([0-9]*\).*/\1/p' $config)
stage=$(grep -o '"stage": [0-9]' "$config" | tr -dc 0-9)
flags=" --num-layers 2 --hidden-size 128 --num-attention-heads 4 "
flags+=" --seq-length 64 --max-position-embeddings 64 --mock-data "
flags+=" --micro-batch-size $micro --global-batch-size $(expr $micro \* 16) "
flags+=" --train-iters 10 --lr 1e-4 --bf16 --vocab-size 500 --tokenizer-type NullTokenizer "
[[ $stage -ge 1 ]] && flags="$flags --use-distributed-optimizer"
python3 -c 'import torch; print(torch.__version__)'
WORLD_SIZE=8 RANK=0 python3 pretrain_gpt.py $flags 2>&1 | tee -a log_$(hostname).txt
exit ${PIPESTATUS[0]}
