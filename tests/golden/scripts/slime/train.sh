#!/bin/bash
pkill -9 sglang; ray stop --force
set -ex
MODEL=(--num-layers 4 --hidden-size 256 --num-attention-heads 8 --swiglu
    --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
    --vocab-size 32000 --attention-dropout 0.0 --hidden-dropout 0.0)
CHECKPOINT=(--hf-checkpoint /models/own --ref-load /models/own_torch_dist)
ROLLOUT=(--prompt-data /data/p.jsonl --input-key prompt --label-key label
    --apply-chat-template --rollout-shuffle --rm-type math --num-rollout 100
    --rollout-batch-size 8 --n-samples-per-prompt 4 --rollout-max-response-len 1024
    --rollout-temperature 1 --global-batch-size 32 --balance-data)
PERFORMANCE=(--tensor-model-parallel-size 2 --sequence-parallel --recompute-granularity full
    --recompute-method uniform --recompute-num-layers 1
    --use-dynamic-batch-size --max-tokens-per-gpu 2048)
RL=(--advantage-estimator grpo --use-kl-loss --kl-loss-coef 0.00 --kl-loss-type low_var_kl
    --entropy-coef 0.00 --eps-clip 0.2 --eps-clip-high 0.28)
ENGINE=(--rollout-num-gpus-per-engine 2 --sglang-mem-fraction-static 0.7
    --sglang-cuda-graph-bs 1 2 4 8)
ray start --head --num-gpus 4
ENVIRONMENT="{\"env_vars\": {\"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\"}}"
ray job submit --address="http://127.0.0.1:8265" --runtime-env-json="${ENVIRONMENT}" -- \
    python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 4 --colocate \
    "${MODEL[@]}" "${CHECKPOINT[@]}" "${ROLLOUT[@]}" "${PERFORMANCE[@]}" "${RL[@]}" "${ENGINE[@]}"
