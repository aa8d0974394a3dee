/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* More of the same: what is left out of experts, and what belongs to programs
 * beside pre-training. */
/** clang-format off */
const me_flag_rule me_flags_not_modelled_more[] = {
    {"--overlap-dispatch-backward-with-experts-wgrad", .needs = "--num-experts",
     .note = "experts: weight gradients beside an exchange",
     .effect = ME_HIGHER(SOME)},
    {"--use-fused-weighted-squared-relu", .needs = "--num-experts",
     .note = "experts: one function for activation and weights",
     .effect = ME_LOWER(SOME)},
    {"--use-grouped-gemm-for-shared-expert "
     "--moe-shared-expert-glu-interleave-size:i "
     "--moe-single-grouped-weight --moe-single-grouped-bias",
     .needs = "--num-experts",
     .note = "experts: other kernels for the same products and copies",
     .effect = ME_EITHER(SOME)},
    {"--moe-enable-routing-replay", .needs = "--num-experts",
     .note = "experts: the router, whose tensors are tokens x experts",
     .effect = ME_EITHER(SOME)},
    {"--moe-permute-fusion-into-hybridep "
     "--moe-hybridep-pad-uneven-dispatch-inputs",
     .needs = "--moe-flex-dispatcher-backend=hybridep",
     .note = "experts: another dispatcher, with buffers of its own",
     .effect = ME_EITHER(ANY)},
    {"--moe-ncclep-static-shape --moe-ncclep-zero-copy",
     .needs = "--moe-flex-dispatcher-backend=ncclep",
     .note = "experts: another dispatcher, with buffers of its own",
     .effect = ME_EITHER(ANY)},
    {"--moe-flex-dispatcher-num-sms:i --moe-deepep-num-sms:i "
     "--moe-hybridep-num-sms:i",
     .needs = "--moe-token-dispatcher-type=flex",
     .note = "experts: multiprocessors of the dispatcher",
     .effect = ME_EITHER(SMALL)},
    {"--moe-hybridep-num-blocks-permute:i "
     "--moe-hybridep-num-blocks-unpermute:i",
     .needs = "--moe-flex-dispatcher-backend=hybridep",
     .note = "experts: multiprocessors of the dispatcher",
     .effect = ME_EITHER(SMALL)},
    {"--moe-hybridep-num-sms-preprocessing:i", .neutral = "108",
     .needs = "--moe-flex-dispatcher-backend=hybridep",
     .note = "experts: multiprocessors of the dispatcher",
     .effect = ME_EITHER(SMALL)},
    {"--moe-pad-experts-for-cuda-graph-inference "
     "--moe-expert-rank-capacity-factor:f --moe-paged-stash",
     .needs = "--num-experts",
     .note = "experts: stashed activations, rows of a rank limited",
     .effect = ME_EITHER(ANY)},
    {"--moe-paged-stash-page-size:i "
     "--moe-paged-stash-buffer-size-factor-cuda:f "
     "--moe-paged-stash-buffer-size-factor-cpu:f",
     .needs = "--moe-paged-stash", .note = "experts: stashed activations",
     .effect = ME_EITHER(ANY)},
    {"--moe-use-upcycling", .needs = "--num-experts",
     .note = "experts of another size", .effect = ME_EITHER(ANY)},
    {"--moe-upcycling-granularity:i", .needs = "--moe-use-upcycling",
     .neutral = "1", .note = "experts of another size",
     .effect = ME_EITHER(ANY)},
    {"--moe-routing-trace-path:s", .needs = "--num-experts",
     .note = "experts: what is logged of each layer",
     .effect = ME_HIGHER(SMALL)},
    {"--moe-routing-trace-max-training-iters:i",
     .needs = "--moe-routing-trace-path",
     .note = "experts: what is logged of each layer",
     .effect = ME_HIGHER(SMALL)},
    {"--moe-routing-trace-capture-logits "
     "--moe-routing-trace-capture-hidden-states "
     "--moe-routing-trace-dump-weights",
     .needs = "--moe-routing-trace-path",
     .note = "experts: traces of whole tensors", .effect = ME_HIGHER(ANY)},
    {"--perform-rl-step", .note = "reinforcement learning",
     .effect = ME_EITHER(ANY)},
    {"--rl-prompts-per-eval:i --grpo-prompts-per-step:i --grpo-group-size:i "
     "--rl-generation-lag:i --rl-submission-granularity:R|G|B "
     "--rl-consumption-granularity:R|G|B --grpo-iterations:i "
     "--grpo-clamp-eps-lower:f --grpo-clamp-eps-upper:f --grpo-kl-beta:f "
     "--grpo-entropy-term-weight:f --grpo-filter-groups-with-same-reward "
     "--langrl-env-config:s --rl-default-temperature:f --rl-default-top-p:f "
     "--rl-default-top-k:i --rl-offload-optimizer-during-inference "
     "--rl-kv-cache-management-mode:persist|offload|recompute "
     "--rl-persist-cuda-graphs --no-rl-persist-cuda-graphs "
     "--rl-partial-rollouts --no-rl-partial-rollouts "
     "--rl-inference-logprobs-is-correction "
     "--no-rl-inference-logprobs-is-correction "
     "--rl-importance-sampling-truncation-coef:f --rl-use-sequence-packing "
     "--no-rl-use-sequence-packing "
     "--rl-sequence-packing-max-sequences-per-bin:i "
     "--rl-sequence-packing-algo:fifo|round-robin --rl-training-cuda-graphs "
     "--no-rl-training-cuda-graphs "
     "--rl-inference-tensor-model-parallel-size:i "
     "--rl-inference-pipeline-model-parallel-size:i "
     "--rl-inference-expert-model-parallel-size:i "
     "--rl-inference-expert-tensor-model-parallel-size:i "
     "--rl-inference-model-unified-memory-level:0|1 "
     "--rl-offload-inference-model-weights-when-idle "
     "--no-rl-offload-inference-model-weights-when-idle "
     "--refit-method:nccl|gloo|nvshmem --rl-verify-model-weights-swap "
     "--no-rl-verify-model-weights-swap --rl-skip-bos-token "
     "--no-rl-skip-bos-token --rl-profile --rl-profile-dir:s "
     "--rl-inference-parsers:*s",
     .needs = "--perform-rl-step", .note = "reinforcement learning",
     .effect = ME_EITHER(ANY)},
    {"--export-model-type:s --export-legacy-megatron --export-te-mcore-model "
     "--export-default-te-spec --export-force-local-attention "
     "--export-kv-cache-quant:s --export-real-quant-cfg:s "
     "--export-quant-cfg:s --export-kd-teacher-load:s "
     "--export-kd-teacher-model-config:s --export-kd-teacher-ckpt-format:s "
     "--export-kd-cfg:s --finetune-hf-dataset:s --finetune-data-split:s "
     "--qad-train-target:s --freeze-base-for-mtp --export-qk-l2-norm "
     "--export-moe-apply-probs-on-input --export-offline-model "
     "--modelopt-enabled --enable-gpt-oss",
     .note = "model optimisation", .effect = ME_EITHER(ANY)},
    {"--vision-pretraining", .note = "vision models", .effect = ME_EITHER(ANY)},
    {"--output-bert-embeddings", .note = "BERT", .effect = ME_EITHER(ANY)},
    {.flags = NULL},
};
/* clang-format on */
