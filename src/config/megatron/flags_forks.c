/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags that Megatron-LM core_v0.19.0 does not have, but its forks or earlier
 * versions: read off public launch commands and the forks' own arguments.py.
 * Everything else that nobody knows is an error, as in the queue. */
#include "config/flags.h"

const me_flag_rule me_flags_forks[] = {
    {"--RMSNorm --rms-norm --use-fast-rms-norm",
     .option = "model.normalization", .constant = "RMSNorm",
     .note = "a fork's norm"},
    {"--use-gated-attention", .option = "model.attention_output_gate",
     .constant = "true", .note = "slime's name for --attention-output-gate"},
    {"--pad-vocab-size-to:i", .option = "model.padded_vocab_size"},
    /* Where a fork's tokenizer is: megatron/tokenizer_flags.c. */
    {"--tokenizer-name-or-path:s --tokenizer-model-path:s --tokenizer-file:s "
     "--hf_autotokenizer_model:s",
     .note = "where a tokenizer is, whose tokens are counted"},
    {"--patch-tokenizer-type:s --extra-vocab-size:i",
     .note = "a fork's vocabulary"},
    /* slime's and miles' ranks and shapes: megatron/slime.c. */
    {"--actor-num-nodes:i --actor-num-gpus-per-node:i --hf-checkpoint:s "
     "--prompt-data:+s --rollout-batch-size:i --n-samples-per-prompt:i "
     "--num-steps-per-rollout:i --rollout-max-response-len:i "
     "--max-tokens-per-gpu:i --use-dynamic-batch-size --colocate "
     "--data-pad-size-multiplier:i",
     .note = "ranks and shapes of slime's jobs"},
    /* FlagScale's width of a gated MLP: megatron/megatron_forks.c. */
    {"--multiple-of:i", .needs = "--swiglu", .note = "the width of an MLP"},
    {"--hidden-dim-multiplier:f", .needs = "--multiple-of",
     .note = "the width of an MLP"},
    /* Yuan 2.0's layers of each stage: megatron/megatron_forks.c. */
    {"--pipeline-model-parallel-method:block "
     "--pipeline-model-parallel-blocks:s",
     .note = "layers of each stage"},
    {.flags = NULL},
};

const me_flag_rule me_flags_forks_no_effect[] = {
    /* Megatron-LM itself, before core_v0.5. */
    {"--data-impl:s --DDP-impl:local|torch --use-mpi "
     "--no-query-key-layer-scaling --layernorm-epsilon:f --dist-url:s "
     "--rank:i --world-size:i --causal-lm --job-name:s --local_rank:i "
     "--mmap-warmup --override-lr-scheduler --use-checkpoint-lr-scheduler "
     "--use-contiguous-buffers-in-ddp --no-contiguous-buffers-in-local-ddp "
     "--no-log-learnig-rate-to-tensorboard --one-logger-entity:s "
     "--renormalize-blend-weights --no-delay-grad-reduce "
     "--delay-param-gather --no-scatter-gather-tensors-in-pipeline "
     "--legacy-tokenizer --tokenizer-hf-use-fast "
     "--tiktoken-special-tokens:+s --muon-use-nesterov "
     "--export-kd-finalize --load-model-opt-format "
     "--log-batch-size-to-tensorboard --enable-one-logger --s3-cache-path:s "
     "--tokenizer-hf-include-special-tokens --retro-return-doc-ids "
     "--retro-no-verify-neighbor-count",
     .note = "of earlier versions and forks: data, launch, logs"},
    {"--retriever-seq-length:i --img-dim:i",
     .note = "of BERT, retrieval or vision models; a GPT reads none"},
    {"--inference-dynamic-batching-buffer-guaranteed-fraction:f "
     "--inference-dynamic-batching-buffer-overflow-factor:f "
     "--inference-dynamic-batching-max-requests-override:i "
     "--inference-dynamic-batching-max-tokens-override:i "
     "--inference-dynamic-batching-chunk-size:i "
     "--inference-dynamic-batching-cuda-graph-max-tokens:i "
     "--inference-max-batch-size:i --disable-chunked-prefill",
     .note = "read where the model serves, not where it trains"},
    /* Megatron-DeepSpeed: arguments.py. */
    {"--train-weighted-split-paths-path:s --valid-weighted-split-paths-path:s "
     "--valid-num-workers:i --kill-switch-path:s --repeated-dataloader "
     "--abort-on-unmet-fused-kernel-constraints --lr-decay-tokens:i "
     "--lr-warmup-tokens:i --train-tokens:i --structured-logs "
     "--structured-logs-dir:s --moe-loss-coeff:f --moe-loss-weight:f "
     "--train-weighted-split-paths:*s --valid-weighted-split-paths:*s "
     "--test-weighted-split-paths:*s --codecarbon-dir:s --log-level:s "
     "--log-level-replica:s --no-load-lr-state --reset-iteration "
     "--wandb-project-name:s --wandb-entity-name:s",
     .note = "Megatron-DeepSpeed's data, logs and schedules of rates"},
    /* Pai-Megatron-Patch: arguments.py. */
    {"--max-padding-length:i --dataset:s --train-mode:s",
     .note = "Pai-Megatron-Patch's data"},
    /* MindSpeed-LLM: arguments.py. */
    {"--handler-name:s --prompt-type:s --enable-thinking:s "
     "--is-instruction-dataset --no-shared-storage --model-type-hf:s "
     "--enable-hf2mg-convert --stage:s --pack --workers:i "
     "--norm-topk-prob --seq-aux --no-shared-fs:*s",
     .note = "MindSpeed-LLM's data and checkpoints"},
    {"--trigger-path:s --kaimm-gc-interval:i --kaimm-cuda-synchronize-level:i "
     "--kaimm-async-dataloader --prefetch-factor:i --rampup-save-interval:i "
     "--verify-checkpoint --verify-checkpoint-model-type:s "
     "--load-distrib-optimizer-method:s --save-distrib-optimizer-method:s "
     "--norm-init-weight:f --original-max-position-embeddings:i "
     "--no-embedding-dropout",
     .note = "a fork's data, logs and checkpoints"},
    /* swiss-ai's Megatron-LM: arguments.py. */
    {"--ademamix-alpha:f --ademamix-beta3:f --ademamix-beta3-warmup:i "
     "--ademamix-alpha-warmup:i --goldfish-k:i --goldfish-h:i",
     .note = "numbers of an optimizer's and a loss of a fork"},
    /* slime's and miles' arguments.py: prompts, rollouts and their engine, which
     * has a process or a share of the card of its own. */
    {"--input-key:s --label-key:s --metadata-key:s --tool-key:s "
     "--multimodal-keys:s --apply-chat-template "
     "--apply-chat-template-kwargs:s --balance-data --balance-by-flops "
     "--rollout-shuffle --rollout-temperature:f --rollout-top-p:f "
     "--rollout-top-k:i --rollout-max-context-len:i "
     "--rollout-max-prompt-len:i --rollout-skip-special-tokens "
     "--rollout-stop:+s --rollout-stop-token-ids:+i --rollout-seed:i "
     "--rollout-function-path:s --rollout-global-dataset "
     "--disable-rollout-global-dataset --over-sampling-batch-size:i "
     "--dynamic-sampling-filter-path:s --buffer-filter-path:s "
     "--partial-rollout --num-epoch:i --start-rollout-id:i "
     "--data-source-path:s --reward-key:s "
     "--eval-reward-key:s --group-rm --rm-url:s --custom-rm-path:s "
     "--custom-generate-function-path:s --custom-rollout-log-function-path:s "
     "--custom-eval-rollout-log-function-path:s --eval-function-path:s "
     "--eval-prompt-data:+s --eval-config:s --skip-eval-before-train "
     "--eval-input-key:s --eval-label-key:s --eval-tool-key:s "
     "--n-samples-per-eval-prompt:i --eval-temperature:f --eval-top-p:f "
     "--eval-top-k:i --eval-max-response-len:i --eval-max-prompt-len:i "
     "--eval-min-new-tokens:i --eval-max-context-len:i --sglang-*:*s "
     "--prefill-num-servers:i "
     "--use-fault-tolerance --rollout-health-check-*:i --update-weight-*:*s "
     "--update-weights-interval:i --check-weight-update-equal "
     "--megatron-to-hf-mode:s --save-hf:s --use-wandb --wandb-mode:s "
     "--wandb-name:s "
     "--wandb-dir:s --wandb-key:s --wandb-host:s --wandb-team:s "
     "--wandb-group:s --wandb-run-id:s --disable-wandb-random-suffix "
     "--use-tensorboard --tb-project-name:s --tb-experiment-name:s "
     "--log-multi-turn --log-passrate --save-debug-rollout-data:s "
     "--num-gpus-per-node:i --model-name:s --train-backend:s "
     "--custom-update-weight-post-write-path:s --rollout-sample-hook-path:s "
     "--rollout-data-postprocess-path:s "
     "--rollout-data-transport:object-store|nixl "
     "--rollout-external-engine-addrs:+s --rollout-buffer-url:s "
     "--fetch-trajectory-retry-times:i --min-batch-collection-ratio:f "
     "--rollout-task-type:s --rollout-sample-filter-path:s "
     "--rollout-all-samples-process-path:s "
     "--custom-reward-post-process-path:s "
     "--custom-convert-samples-to-train-data-path:s --loss-mask-type:s "
     "--wandb-always-use-train-step --log-reward-category:s "
     "--log-correct-samples --load-forge-rollout-data:s "
     "--load-debug-rollout-data-subsample:f --save-debug-train-data:s "
     "--dump-details:s --memory-snapshot-dir:s --memory-snapshot-num-steps:i "
     "--memory-recorder:torch|memray "
     "--profile-target:+train_overall|train_actor|train_log_probs --ci-test "
     "--ci-disable-kl-checker --ci-train-rollout-logprob-abs-diff-threshold:f "
     "--ci-save-grad-norm:s --ci-load-grad-norm:s --reset-optimizer-states",
     .note = "prompts, rollouts, rewards and logs around the training step"},
    {"--rm-type:s --num-rollout:i --advantage-estimator:s --qkv-format:s "
     "--offload --offload-train --offload-rollout --release-train "
     "--no-offload --no-offload-train --debug-train-only "
     "--ref-micro-batch-size:i",
     .note = "rewards and what leaves the cards between training steps"},
    {"--eps-clip:f --eps-clip-high:f --eps-clip-c:f --value-clip:f "
     "--kl-loss-type:s --gamma:f --lambd:f --normalize-advantages "
     "--disable-grpo-std-normalization --disable-rewards-normalization "
     "--tis-clip:f --tis-clip-low:f --use-unbiased-kl --use-opsm "
     "--opsm-delta:f --use-rollout-logprobs "
     "--mask-offpolicy-in-partial-rollout "
     "--disable-compute-advantages-and-returns",
     .note = "numbers of the loss of reinforcement learning"},
    {.flags = NULL},
};

const me_flag_rule me_flags_forks_not_modelled[] = {
    {"--deepspeed --deepspeed_config:s --zero-stage:i "
     "--deepspeed-activation-checkpointing --no-pipeline-parallel "
     "--ds-sequence-parallel-size:i --pp-partition-method:s "
     "--create-moe-param-group",
     .note = "DeepSpeed's engine and ZeRO", .effect = ME_EITHER(ANY)},
    {"--moe-expert-parallel-size:i --moe-train-capacity-factor:f "
     "--moe-eval-capacity-factor:f --moe-min-capacity:i --moe-num-experts:i "
     "--moe-capacity-factor:i --moe-top-k:i --moe-expert-model-parallelism "
     "--moe-capacity-bins-*:f",
     .note = "experts of another library", .effect = ME_EITHER(ANY)},
    /* roots of second moments, one parameter after the other: training.py */
    {"--log-optimizer-states-to-tensorboard",
     .note = "Megatron-DeepSpeed's norms of states, of copies between steps",
     .effect = ME_HIGHER(SOME)},
    {"--goldfish-loss", .note = "a fork's loss, with another mask",
     .effect = ME_HIGHER(SOME)},
    /* Long-VITA: arguments.py. */
    {"--vision-*:*s --language-model-freeze --image-token-length:i "
     "--image-size:i --prompt-format:s --max-num-frame:i --max-fps:i "
     "--add-class-token --min-patch-grid:i --max-patch-grid:i "
     "--cross-dataset-joint --data-seq-length:i --vit-load:s",
     .note = "a model for images beside the language model",
     .effect = ME_EITHER(ANY)},
    {"--first-k-dense-replace:i --n-shared-experts:i --noop-layers:s "
     "--schedules-method:s "
     "--attention-head-type:s --hybrid-attention-ratio:f "
     "--hybrid-mlp-ratio:f "
     "--interleave-group-size:i "
     "--enable-zb-runtime --allow-padding-num-layers --use-legacy-models "
     "--use-lf-gate --lf-conv2d-group:i --lf-conv2d-num-pad:i "
     "--norm-dtype:s --embed-layernorm --xielu --t5-swiglu",
     .note = "a fork's layers or stages", .effect = ME_EITHER(ANY)},
    {"--sparse-mode:i --context-parallel-algo:s --use-cp-send-recv-overlap "
     "--cp-attention-mask-type:s --sliding-window:i "
     "--use-flash-attn-triton --use-fused-rotary-pos-emb --use-fused-rmsnorm:*s "
     "--use-fused-swiglu --use-fast-rope --use-fast-softmax:i "
     "--use-fused-sdpa:i --use-fused-sdpa-with-recompute:i --mla-fa-without-pad "
     "--qknorm-impl:s --use-turbo-attention --use-turbo-grouped-gemm "
     "--use-te-custom-op:i --flash-attn-drop:f",
     .note = "a fork's kernels", .effect = ME_EITHER(SOME)},
    {"--enable-primus-turbo", // modules have switches of their own
     .needs = "--use-turbo-attention --use-turbo-grouped-gemm --fp8-format "
              "--fp4-format",
     .note = "a fork's kernels", .effect = ME_EITHER(SOME)},
    {"--reuse-fp32-param --swap-optimizer --swap-optimizer-times:i "
     "--o2-gradient --o2-optimizer --overlapped-distributed-optimizer "
     "--reduce-bucket-size:f",
     .note = "a fork's optimizer", .effect = ME_EITHER(ANY)},
    {"--recompute-activation-function --kaimm-recompute-norm "
     "--kaimm-recompute-mlp-activation-func "
     "--kaimm-offload-activation-ratio:f --q-rms-recompute "
     "--mtp-mem-efficient-logits",
     .note = "what a fork computes again or offloads", .effect = ME_LOWER(ANY)},
    {"--moe-alltoall-overlap-comm --moe-fb-overlap "
     "--moe-permutation-async-comm --moe-tp-extend-ep "
     "--overlap-ep-comm-with-split-attn --overlap-p2p-communication "
     "--overlap-sp-ag --overlap-sp-rs --use-ascend-coc --coc-fused-kernel "
     "--use-mc2 --no-async-tensor-model-parallel-allreduce "
     "--kaimm-overlap-cp-slow-ctas:i --gemm-gradient-accumulation-fusion "
     "--moe-use-fused-router-with-aux-score --moe-use-legacy-grouped-gemm "
     "--turbo-sync-free-moe-stage:i --moe-router-fp32 "
     "--router-gating-in-fp32 --moe-router-topk-limited-devices:i "
     "--sync-tp-duplicated-parameters --use-z-loss --bias-zero-mean-update",
     .note = "a fork's communication", .effect = ME_EITHER(SOME)},
    {"--rope-scaling-type:s", .note = "a fork's scaled rope",
     .effect = ME_EITHER(SMALL)},
    {"--rope-scaling-mscale:f --rope-scaling-mscale-all-dim:f --beta-fast:i "
     "--beta-slow:i --rope-scaling-original-max-position-embeddings:i",
     .needs = "--rope-scaling-type --rope-type=yarn "
              "--position-embedding-type=yarn",
     .note = "a fork's scaled rope", .effect = ME_EITHER(SMALL)},
    {"--use-torch-compile:i --use-regional-compilation:i "
     "--use-torch-compiled-autograd:i --allow-unspec-int-on-nn-module:i "
     "--cache-size-limit:i",
     .neutral = "0", .note = "compiled layers", .effect = ME_EITHER(MUCH)},
    /* Megatron-LM's own, from core_v0.15.0 to core_v0.18.0. */
    {"--grpo-default-temperature:f --grpo-default-top-p:f "
     "--langrl-inference-server-type:inplace_megatron|inplace_megatron_chat "
     "--langrl-inference-server-conversation-template:s "
     "--langrl-external-server --no-langrl-external-server "
     "--rl-offload-kv-cache-during-training "
     "--no-rl-offload-kv-cache-during-training "
     "--rl-remove-kv-cache-during-training "
     "--no-rl-remove-kv-cache-during-training --rl-reset-cuda-graphs "
     "--no-rl-reset-cuda-graphs --rl-calculate-intra-group-similarity "
     "--no-rl-calculate-intra-group-similarity "
     "--rl-sequence-packing-bin-size:i --rl-parallel-generation-tasks:i "
     "--rl-num-parallel-generations:i --rl-num-parallel-generation-batches:i "
     "--rl-generation-batch-size:i",
     .needs = "--perform-rl-step", .note = "reinforcement learning",
     .effect = ME_EITHER(ANY)},
    {"--ref-load:s --rollout-num-gpus:i "
     "--rollout-num-gpus-per-engine:i --use-kl-loss --use-tis --use-critic "
     "--critic-*:*s --keep-old-actor --ref-update-interval:i "
     "--ref-ckpt-step:i --use-routing-replay --use-rollout-routing-replay "
     "--log-probs-chunk-size:i --log-probs-max-tokens-per-gpu:i "
     "--recompute-loss-function --use-opd --opd-*:*s --enable-mtp-training",
     .note = "reinforcement learning around the training step",
     .effect = ME_HIGHER(ANY)},
    {"--freeze-params-name-list:*s --only-train-params-name-list:*s "
     "--freeze-indexer",
     .note = "parameters that are frozen", .effect = ME_LOWER(ANY)},
    {"--no-offload-rollout", .needs = "--colocate",
     .note = "a rollout engine that stays on the cards",
     .effect = ME_HIGHER(ANY)},
    {"--debug-rollout-only", .note = "nothing is trained then",
     .effect = ME_LOWER(ANY)},
    {"--post-self-attn-layernorm --post-mlp-layernorm",
     .note = "a fork's norms behind attention and MLP",
     .effect = ME_HIGHER(SOME)},
    {"--use-stateless-adam", .note = "an Adam whose states no step keeps",
     .effect = ME_LOWER(ANY)},
    {"--custom-model-provider-path:s --megatron-config-path:s "
     "--custom-config-path:s --custom-megatron-init-path:s "
     "--custom-megatron-before-log-prob-hook-path:s "
     "--custom-megatron-before-train-step-hook-path:s",
     .note = "a model, settings or functions of one's own",
     .effect = ME_EITHER(ANY)},
    {"--train-env-vars:s", .neutral = "{}",
     .note = "variables of the training processes", .effect = ME_EITHER(SOME)},
    {"--allgather-cp", .needs = "--context-parallel-size",
     .note = "context ranks whose keys and values are gathered",
     .effect = ME_EITHER(SOME)},
    {"--loss-type:s", .neutral = "policy_loss|sft_loss",
     .note = "a loss of one's own", .effect = ME_EITHER(SOME)},
    {"--custom-loss-function-path:s --custom-advantage-function-path:s "
     "--custom-tis-function-path:s --custom-pg-loss-reducer-function-path:s "
     "--use-rollout-entropy --get-mismatch-metrics",
     .note = "what is computed of the tokens' probabilities",
     .effect = ME_EITHER(SOME)},
    {"--megatron-deepgemm-forward-layers:+i "
     "--megatron-deepgemm-forward-modules:+s "
     "--megatron-deepgemm-moe-forward-layers:+i "
     "--megatron-deepgemm-moe-forward-modules:+s",
     .note = "products of another library, in FP8", .effect = ME_EITHER(SOME)},
    {"--kl-loss-coef:f --kl-coef:f --entropy-coef:f", .neutral = "0",
     .note = "terms of the loss of reinforcement learning",
     .effect = ME_HIGHER(SOME)},
    {"--lora-rank:i --lora-alpha:i --lora-dropout:f --target-modules:+s",
     .note = "adapters alone are trained", .effect = ME_LOWER(ANY)},
    {.flags = NULL},
};

const me_flag_spelling me_flag_spellings[] = {
    {"--normalization", "layernorm", "LayerNorm", NULL, ME_EITHER(NONE)},
    {"--normalization", "rmsnorm", "RMSNorm", NULL, ME_EITHER(NONE)},
    {"--optimizer", "fusedadamw|adamw|fused_adam", "adam", NULL,
     ME_EITHER(NONE)},
    {"--optimizer", "ademamix", "adam", "a fork's AdEMAMix, with a third state",
     ME_HIGHER(ANY)},
    {"--optimizer", "adamw-bnb-8bit", "adam",
     "a fork's Adam with states of 8 bits", ME_LOWER(ANY)},
    {"--optimizer", "adafactor", "adam", "a fork's Adafactor, of fewer states",
     ME_LOWER(ANY)},
    {"--position-embedding-type", "alibi|ALiBi", "none",
     "a fork's ALiBi, whose biases are added to the scores", ME_HIGHER(SOME)},
    {"--moe-token-dispatcher-type", "alltoall_seq", "alltoall",
     "an exchange of core_v0.12.0 and before, of whole sequences",
     ME_EITHER(SOME)},
    {"--lr-wsd-decay-style", "1-sqrt", "minus_sqrt", NULL, ME_EITHER(NONE)},
    {"--distributed-backend", "flagcx", "nccl",
     "a fork's collectives, of NCCL below them and buffers of their own",
     ME_EITHER(SOME)},
    {"--attention-backend", "flash_2|flash_3|flash_4", "flash", NULL,
     ME_EITHER(NONE)},
    {"--recompute-method", "chunk", "uniform", "a fork's recomputed chunks",
     ME_EITHER(ANY)},
    {.flag = NULL},
};
