#!/bin/bash
set -x
NODES=${NODES:-1}
prompt=$((512 * 1)) response=$((512 * 3))
files="['$HOME/data/a.parquet', '$HOME/data/b.parquet']"
offload=True
TP=${TP:-2} VPP=${VPP:-null}
ray job submit --address="http://127.0.0.1:8265" --working-dir . -- \
    python3 -m verl.trainer.main_ppo --config-path=./config --config-name='ppo_megatron_trainer' \
    data.train_files="$files" \
    data.max_prompt_length=${prompt} data.max_response_length=${response} \
    algorithm.adv_estimator=grpo \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_mini_batch_size=8 \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$((prompt + response)) \
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=$TP \
    actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size=$VPP \
    actor_rollout_ref.actor.megatron.param_offload=$offload \
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full \
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform \
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1 \
    +actor_rollout_ref.actor.optim.override_optimizer_config.use_precision_aware_optimizer=True \
    actor_rollout_ref.ref.megatron.tensor_model_parallel_size=4 \
    trainer.logger='["console","wandb"]' trainer.n_gpus_per_node=4 trainer.nnodes="$NODES" "$@"
