/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags that Megatron-LM core_v0.19.0 does not have, but its forks or earlier
 * versions: read off public launch commands and the forks' own arguments.py.
 * Everything else that nobody knows is an error, as in the queue. */
#include "config/flags.h"

const me_flag_rule me_flags_forks[] = {
    {"--RMSNorm --rms-norm --use-fast-rms-norm",
     .option = "model.normalization", .constant = "RMSNorm",
     .note = "a fork's norm"},
    {"--pad-vocab-size-to:i", .option = "model.padded_vocab_size"},
    /* Where a fork's tokenizer is: megatron/tokenizer_flags.c. */
    {"--tokenizer-name-or-path:s --tokenizer-model-path:s --tokenizer-file:s "
     "--hf_autotokenizer_model:s",
     .option = NULL},
    {.flags = NULL},
};

const me_flag_rule me_flags_forks_no_effect[] = {
    /* Megatron-LM itself, before core_v0.5. */
    {"--data-impl:s --DDP-impl:local|torch --use-mpi "
     "--no-query-key-layer-scaling --layernorm-epsilon:f --dist-url:s "
     "--rank:i --world-size:i --causal-lm --job-name:s",
     .note = "of earlier versions and forks: data, launch, logs"},
    /* Megatron-DeepSpeed: arguments.py. */
    {"--train-weighted-split-paths-path:s --valid-weighted-split-paths-path:s "
     "--valid-num-workers:i --kill-switch-path:s --repeated-dataloader "
     "--abort-on-unmet-fused-kernel-constraints --lr-decay-tokens:i "
     "--lr-warmup-tokens:i --train-tokens:i --structured-logs "
     "--structured-logs-dir:s --moe-loss-coeff:f",
     .note = "Megatron-DeepSpeed's data, logs and schedules of rates"},
    /* Pai-Megatron-Patch: arguments.py. */
    {"--max-padding-length:i --patch-tokenizer-type:s --dataset:s "
     "--train-mode:s",
     .note = "Pai-Megatron-Patch's data"},
    /* MindSpeed-LLM: arguments.py. */
    {"--handler-name:s --prompt-type:s --enable-thinking:s "
     "--is-instruction-dataset --no-shared-storage --model-type-hf:s "
     "--enable-hf2mg-convert --stage:s --pack --workers:i "
     "--norm-topk-prob --seq-aux --no-shared-fs:s",
     .note = "MindSpeed-LLM's data and checkpoints"},
    {"--trigger-path:s --kaimm-gc-interval:i --kaimm-cuda-synchronize-level:i "
     "--kaimm-async-dataloader --prefetch-factor:i --rampup-save-interval:i "
     "--verify-checkpoint --verify-checkpoint-model-type:s "
     "--load-distrib-optimizer-method:s --save-distrib-optimizer-method:s "
     "--norm-init-weight:f --original-max-position-embeddings:i "
     "--no-embedding-dropout",
     .note = "a fork's data, logs and checkpoints"},
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
     "--moe-capacity-factor:i --moe-top-k:i --moe-expert-model-parallelism",
     .note = "experts of another library", .effect = ME_EITHER(ANY)},
    {"--extra-vocab-size:i", .note = "a fork's vocabulary",
     .effect = ME_EITHER(SOME)},
    {"--first-k-dense-replace:i --n-shared-experts:i --noop-layers:s "
     "--schedules-method:s --multiple-of:i --hidden-dim-multiplier:f "
     "--attention-head-type:s --hybrid-attention-ratio:f "
     "--hybrid-mlp-ratio:f --pipeline-model-parallel-method:s "
     "--pipeline-model-parallel-blocks:s --interleave-group-size:i "
     "--enable-zb-runtime --allow-padding-num-layers --use-legacy-models "
     "--use-lf-gate --lf-conv2d-group:i --lf-conv2d-num-pad:i "
     "--norm-dtype:s --embed-layernorm --xielu --t5-swiglu",
     .note = "a fork's layers or stages", .effect = ME_EITHER(ANY)},
    {"--context-parallel-algo:s --use-cp-send-recv-overlap "
     "--cp-attention-mask-type:s --sliding-window:i "
     "--use-flash-attn-triton --use-fused-rotary-pos-emb --use-fused-rmsnorm:*s "
     "--use-fused-swiglu --use-fast-rope --use-fast-softmax:i "
     "--use-fused-sdpa:i --use-fused-sdpa-with-recompute:i --mla-fa-without-pad "
     "--qknorm-impl:s --use-turbo-attention --use-turbo-grouped-gemm "
     "--enable-primus-turbo --use-te-custom-op:i --flash-attn-drop:f",
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
    {"--rope-scaling-type:s --rope-scaling-mscale:f "
     "--rope-scaling-mscale-all-dim:f --beta-fast:i --beta-slow:i "
     "--rope-scaling-original-max-position-embeddings:i",
     .note = "a fork's scaled rope", .effect = ME_EITHER(SMALL)},
    {"--use-torch-compile:i --use-regional-compilation:i "
     "--use-torch-compiled-autograd:i --allow-unspec-int-on-nn-module:i "
     "--cache-size-limit:i",
     .neutral = "0", .note = "compiled layers", .effect = ME_EITHER(MUCH)},
    {"--actor-num-nodes:i --actor-num-gpus-per-node:i --colocate "
     "--hf-checkpoint:s --ref-load:s --prompt-data:+s --rollout-batch-size:i "
     "--num-rollout:i --n-samples-per-prompt:i --rm-type:s "
     "--rollout-max-response-len:i --rollout-num-gpus:i "
     "--rollout-num-gpus-per-engine:i --max-tokens-per-gpu:i "
     "--use-dynamic-batch-size --advantage-estimator:s",
     .note = "reinforcement learning around the training step",
     .effect = ME_HIGHER(ANY)},
    {.flags = NULL},
};
