/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* The flags of Megatron-LM core_v0.19.0 that may change memory and are not
 * modelled. Read off its argument parser. `effect` says in which direction a
 * job with the flag lies from what is estimated, and how far at most: see
 * model/effect.h. */
/** clang-format off */
const me_flag_rule me_flags_not_modelled[] = {
    {"--fp32-residual-connection", .option = "model.fp32_residual_connection",
     .constant = "true", .note = "the float32 residual stream is not modelled",
     .effect = ME_HIGHER(ANY)},
    {"--max-seqlen-per-dp-cp-rank:i --hybrid-context-parallel",
     .note = "hybrid context parallelism", .effect = ME_EITHER(ANY)},
    {"--expert-tensor-parallel-num-weight-shards:i", .needs = "--num-experts",
     .note = "expert parallelism", .effect = ME_EITHER(ANY)},
    {"--tensor-parallel-num-weight-shards:i",
     .note = "weights sharded beyond tensor parallelism",
     .effect = ME_EITHER(ANY)},
    {"--pipeline-model-parallel-comm-backend:nccl|ucc "
     "--distributed-backend:nccl|gloo",
     .neutral = "nccl", .note = "communication backend",
     .effect = ME_EITHER(SMALL)},
    {"--use-ring-exchange-p2p", .note = "ring exchange of pipeline stages",
     .effect = ME_EITHER(SMALL)},
    {"--use-cpu-initialization",
     .note = "initialisation away from the GPU, less in set-up",
     .effect = ME_LOWER(SMALL)},
    {"--batch-invariant-mode", .note = "other kernels",
     .effect = ME_EITHER(SOME)},
    {"--delay-offload-until-cuda-graph",
     .needs = "--fine-grained-activation-offloading",
     .note = "copies to the host begin when a CUDA graph is replayed",
     .effect = ME_EITHER(SOME)},
    {"--mtp-standalone", .needs = "--mtp-num-layers",
     .note = "shapes that stages exchange; a layout says where "
             "multi-token prediction is",
     .effect = ME_HIGHER(SMALL)},
    {"--mtp-detach-heads", .needs = "--mtp-num-layers",
     .note = "multi-token prediction whose gradients end before the model",
     .effect = ME_EITHER(SOME)},
    {"--apply-layernorm-1p",
     .needs = "--transformer-impl=local", // TE's kernels add the one
     .note = "norm weights around zero, one more vector",
     .effect = ME_HIGHER(SMALL)},
    {"--enable-experimental", .needs = "--moe-permute-fusion",
     .note = "fused kernels that pad routing maps and convert indices; "
             "without experts it only lets other flags pass",
     .effect = ME_EITHER(SMALL)},
    {"--cache-mla-latents", .needs = "--multi-latent-attention",
     .note = "of inference: Megatron-LM stops at it in training",
     .effect = ME_EITHER(NONE)},
    {"--experimental-attention-variant:gated_delta_net|dsa",
     .note = "attention variant", .effect = ME_EITHER(ANY)},
    {"--dsa-indexer-n-heads:i --dsa-indexer-head-dim:i --dsa-indexer-topk:i "
     "--dsa-indexer-topk-freq:i --dsa-indexer-skip-topk-offset:i "
     "--dsa-indexer-loss-coeff:f --dsa-indexer-use-sparse-loss "
     "--dsa-kernel-backend:none|tilelang|cudnn "
     "--dsa-indexer-rope-interleaved --dsa-indexer-k-norm-epsilon:f "
     "--dsa-indexer-k-norm-fp32 --linear-conv-kernel-dim:i "
     "--linear-key-head-dim:i --linear-value-head-dim:i "
     "--linear-num-key-heads:i --linear-num-value-heads:i "
     "--linear-attention-freq:p --no-dsa-indexer-rotate-activation "
     "--disable-dsa-indexer-rotate-activation --no-dsa-indexer-scoring-relu "
     "--disable-dsa-indexer-scoring-relu",
     .needs = "--experimental-attention-variant", .note = "attention variant",
     .effect = ME_EITHER(ANY)},
    {"--fused-residual-rmsnorm",
     .needs = "--num-experts --multi-latent-attention",
     .note = "kernels of Transformer Engine", .effect = ME_EITHER(SOME)},
    {"--fp8-quantizer-factory:s --fp8-output-proj "
     "--reuse-grad-buf-for-mxfp8-param-ag",
     .needs = "--fp8-format", .note = "FP8", .effect = ME_EITHER(SOME)},
    {"--fp4-format:e2m1", .note = "FP4",
     .effect = {ME_REACH_MUCH, ME_REACH_SOME}},
    {"--fp4-recipe:nvfp4|custom --fp4-quantizer-factory:s --fp4-param-gather",
     .needs = "--fp4-format", .note = "FP4",
     .effect = {ME_REACH_MUCH, ME_REACH_SOME}},
    {"--te-precision-config-file:s --use-kitchen-attention "
     "--kitchen-config-file:s --kitchen-recipe-number:i",
     .note = "quantisation", .effect = ME_EITHER(ANY)},
    {"--kitchen-attention-backend:sdpa|fa", .needs = "--use-kitchen-attention",
     .note = "quantisation", .effect = ME_EITHER(ANY)},
    {"--optimizer-cuda-graph", .note = "a CUDA graph of the optimizer",
     .effect = ME_EITHER(ANY)},
    {"--te-rng-tracker", // TE's modules take as much without it
     .needs = "--transformer-impl=local",
     .note = "random state for CUDA graphs", .effect = ME_EITHER(SMALL)},
    {"--no-clone-scatter-output-in-embedding "
     "--disable-clone-scatter-output-in-embedding",
     .needs = "--sequence-parallel",
     .note = "the embedding keeps its whole output", .effect = ME_HIGHER(SOME)},
    {"--symmetric-ar-type:two_shot|one_shot|multimem_all_reduce",
     .note = "symmetric-memory all-reduce", .effect = ME_HIGHER(SMALL)},
    {"--mrope-section:+i", .needs = "--position-embedding-type=mrope",
     .note = "multimodal rotary embedding", .effect = ME_EITHER(SMALL)},
    {"--is-hybrid-model --hybrid-layer-pattern:s --hybrid-override-pattern:s",
     .note = "state-space layers", .effect = ME_EITHER(ANY)},
    {"--mamba-state-dim:i --mamba-head-dim:i --mamba-num-groups:i "
     "--mamba-num-heads:i --disable-mamba-mem-eff-path "
     "--mamba-training-ssm-states-dtype:fp32|bf16",
     .needs = "--hybrid-layer-pattern", .note = "state-space layers",
     .effect = ME_EITHER(ANY)},
    {"--mlp-chunks-for-training:i", .neutral = "1", .note = "MLP in chunks",
     .effect = ME_LOWER(SOME)},
    {"--no-position-embedding", .needs = "!--position-embedding-type=rope|none",
     .note = "deprecated; learned positions unless rope is given",
     .effect = ME_LOWER(SMALL)},
    {"--onnx-safe:s", .note = "workarounds for ONNX",
     .effect = ME_EITHER(SMALL)},
    {"--decoder-num-layers:i --decoder-seq-length:i",
     .note = "encoder-decoder models", .effect = ME_EITHER(ANY)},
    {"--step-batch-size-schedule:s",
     .note = "batch sizes that change; the largest is estimated",
     .effect = ME_EITHER(SMALL)},
    {"--check-weight-hash-across-dp-replicas-interval:i "
     "--gpu-sniff-test-interval:i",
     .note = "a check that allocates", .effect = ME_HIGHER(SMALL)},
    {"--record-shapes", .needs = "--profile", .note = "autograd profiling",
     .effect = ME_HIGHER(SMALL)},
    {"--use-pytorch-profiler", .needs = "--profile",
     .note = "profilers take device memory", .effect = ME_HIGHER(SMALL)},
    {"--freeze-all-layers", .note = "frozen layers", .effect = ME_LOWER(ANY)},
    {"--skip-train", .note = "a job that does not train",
     .effect = ME_LOWER(ANY)},
    {"--use-checkpoint-args --use-mp-args-from-checkpoint-args",
     .note = "flags kept in a checkpoint", .effect = ME_EITHER(ANY)},
    {"--load-main-params-from-ckpt", .needs = "--load",
     .note = "loading a checkpoint at the start, in pieces",
     .effect = ME_HIGHER(SMALL)},
    {"--save-activations-interval:i --save-wgrads-interval:i "
     "--save-dgrads-interval:i --save-tokens-per-expert-interval:i",
     .note = "saving activations or gradients, which are kept",
     .effect = ME_HIGHER(ANY)},
    {"--megatron-fsdp-enable-fine-grained-param-gather "
     "--megatron-fsdp-max-pool-double-buffer",
     .needs = "--use-megatron-fsdp", .note = "fully sharded data parallelism",
     .effect = ME_EITHER(SOME)},
    {"--fsdp-manual-registration", .needs = "--use-nccl-ub",
     .note = "registered communication buffers", .effect = ME_HIGHER(SOME)},
    {"--nccl-communicator-config-path:s", .note = "settings of communicators",
     .effect = ME_EITHER(SMALL)},
    {"--use-sharp", .note = "in-network reduction", .effect = ME_EITHER(SMALL)},
    {"--sharp-enabled-group:dp|dp_replica", .needs = "--use-sharp",
     .note = "in-network reduction", .effect = ME_EITHER(SMALL)},
    {"--use-nccl-ub", .note = "registered communication buffers",
     .effect = ME_HIGHER(SOME)},
    {"--disable-symmetric-registration", .needs = "--use-nccl-ub",
     .note = "registered communication buffers", .effect = ME_EITHER(SOME)},
    {"--create-all-gather-group", .note = "one more communicator",
     .effect = ME_HIGHER(SMALL)},
    {"--fake-process-group",
     .note = "a process group without peers, so no communicators",
     .effect = ME_LOWER(SOME)},
    {"--ddp-param-name-patterns-for-fp32-local-accumulation:+s",
     .note = "gradients of some parameters that are added up in float32",
     .effect = ME_HIGHER(ANY)},
    {"--test-mode", .note = "test mode", .effect = ME_EITHER(SMALL)},
    {"--dataloader-inter-document-masking", .note = "packed documents",
     .effect = ME_EITHER(SOME)},
    {"--sft", .note = "fine-tuning with packed samples",
     .effect = ME_EITHER(ANY)},
    {"--sft-tokenizer-prompt-format:s", .needs = "--sft", .note = "fine-tuning",
     .effect = ME_EITHER(NONE)},
    {"--no-pad-vocab-size --disable-pad-vocab-size",
     .note = "a vocabulary that is not padded; the padded one is estimated",
     .effect = ME_LOWER(SMALL)},
    {"--heterogeneous-layers-config-path:s "
     "--heterogeneous-layers-config-encoded-json:s",
     .note = "layers that differ", .effect = ME_EITHER(ANY)},
    {"--spec:*s", .note = "a layer specification of its own",
     .effect = ME_EITHER(ANY)},
    {"--logits-save-dir:s --logits-load-dir:s",
     .note = "distillation from logits", .effect = ME_HIGHER(ANY)},
    {"--logits-save-top-k:i --logits-save-top-p:f "
     "--logits-save-top-p-min-k:i --logits-save-dtype:fp16|bf16|fp32",
     .needs = "--logits-save-dir", .note = "distillation from logits",
     .effect = ME_HIGHER(ANY)},
    {"--logits-load-decode-threads:i --logits-load-prefetch-factor:i "
     "--logits-load-msc-prefetch-depth:i --logits-load-kd-loss-alpha:f "
     "--logits-load-ignore-errors",
     .needs = "--logits-load-dir", .note = "distillation from logits",
     .effect = ME_HIGHER(ANY)},
    {"--inprocess-restart", .note = "restart within the process",
     .effect = ME_EITHER(SMALL)},
    {"--inprocess-max-iterations:i --inprocess-monitor-thread-interval:f "
     "--inprocess-monitor-process-interval:f "
     "--inprocess-progress-watchdog-interval:f "
     "--inprocess-heartbeat-interval:f --inprocess-soft-timeout:f "
     "--inprocess-hard-timeout:f --inprocess-heartbeat-timeout:f "
     "--inprocess-barrier-timeout:f --inprocess-completion-timeout:f "
     "--inprocess-last-call-wait:f --inprocess-termination-grace-time:f "
     "--inprocess-granularity:node|rank --inprocess-active-world-size:i "
     "--inprocess-empty-cuda-cache",
     .needs = "--inprocess-restart", .note = "restart within the process",
     .effect = ME_EITHER(SMALL)},
    {"--error-injection-rate:i", .neutral = "0", .note = "injected errors",
     .effect = ME_EITHER(NONE)},
    {"--error-injection-type:correct_result|transient_error|persistent_error",
     .needs = "--error-injection-rate", .note = "injected errors",
     .effect = ME_EITHER(NONE)},
    {"--replication --replication-jump:i --replication-factor:i",
     .needs = "--non-persistent-ckpt-type=local",
     .note = "copies of local checkpoints, which GPUs exchange",
     .effect = ME_HIGHER(SOME)},
    {"--use-persistent-ckpt-worker", .needs = "--async-save",
     .note = "a process that writes checkpoints, with a CUDA context",
     .effect = ME_HIGHER(SMALL)},
    {"--mtp-hybrid-override-pattern:s", .needs = "--mtp-num-layers",
     .note = "becomes a pattern of layers, as of hybrid models",
     .effect = ME_EITHER(ANY)},
    {.flags = NULL},
};
/* clang-format on */
