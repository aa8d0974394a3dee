/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* The flags of Megatron-LM core_v0.19.0 that may change memory and are not
 * modelled. Read off its argument parser. */
/* clang-format off */
const me_flag_rule me_flags_not_modelled[] = {
    {"--apply-query-key-layer-scaling",
     .option = "model.attention_softmax_in_fp32", .constant = "true",
     .note = "temporary of the scaling; float32 softmax is estimated"},
    {"--initial-loss-scale:f",
     .neutral = "4294967296", .needs = "--fp16",
     .note = "the first steps are taken to overflow, as from 2^32"},
    {"--fp32-residual-connection",
     .option = "model.fp32_residual_connection", .constant = "true",
     .note = "the float32 residual stream is not modelled"},
    {"--context-parallel-size:i",
     .option = "parallel.context", .neutral = "1",
     .note = "context parallelism"},
    {"--hierarchical-context-parallel-sizes:+i --max-seqlen-per-dp-cp-rank:i "
     "--hybrid-context-parallel",
     .note = "hybrid context parallelism"},
    {"--cp-comm-type:+s",
     .needs = "--context-parallel-size", .note = "context parallelism"},
    {"--expert-tensor-parallel-num-weight-shards:i",
     .needs = "--num-experts", .note = "expert parallelism"},
    {"--tensor-parallel-num-weight-shards:i",
     .note = "weights sharded beyond tensor parallelism"},
    {"--pipeline-model-parallel-comm-backend:nccl|ucc "
     "--distributed-backend:nccl|gloo",
     .neutral = "nccl", .note = "communication backend"},
    {"--use-ring-exchange-p2p", .note = "ring exchange of pipeline stages"},
    {"--use-cpu-initialization --init-model-with-meta-device",
     .note = "initialisation away from the GPU"},
    {"--deterministic-mode --batch-invariant-mode", .note = "other kernels"},
    {"--tp-comm-overlap",
     .note = "overlapped tensor-parallel communication of Transformer Engine"},
    {"--tp-comm-overlap-rs-dgrad --tp-comm-bootstrap-backend:nccl|mpi|gloo "
     "--tp-comm-overlap-cfg:s --no-tp-comm-bulk-wgrad "
     "--disable-tp-comm-bulk-wgrad --no-tp-comm-bulk-dgrad "
     "--disable-tp-comm-bulk-dgrad --no-tp-comm-overlap-ag "
     "--disable-tp-comm-overlap-ag --no-tp-comm-overlap-rs "
     "--disable-tp-comm-overlap-rs --no-tp-comm-split-ag "
     "--disable-tp-comm-split-ag --no-tp-comm-split-rs "
     "--disable-tp-comm-split-rs",
     .needs = "--tp-comm-overlap",
     .note = "overlapped tensor-parallel communication"},
    {"--cross-entropy-fusion-impl:native|te",
     .neutral = "native", .needs = "--cross-entropy-loss-fusion",
     .note = "only the native fused cross entropy is modelled"},
    {"--delay-wgrad-compute", .note = "delayed weight gradients"},
    {"--defer-embedding-wgrad-compute", .note = "deferred embedding gradient"},
    {"--wgrad-deferral-limit:i",
     .needs = "--defer-embedding-wgrad-compute",
     .note = "deferred embedding gradient"},
    {"--cpu-offloading-num-layers:i",
     .neutral = "0", .note = "offloading to the host"},
    {"--cpu-offloading-retain-pinned-cpu-buffers",
     .needs = "--cpu-offloading-num-layers", .note = "offloading to the host"},
    {"--fine-grained-activation-offloading", .note = "offloading to the host"},
    {"--offload-modules:+s --min-offloaded-tensor-size:i "
     "--delay-offload-until-cuda-graph "
     "--delta-offload-bytes-across-pp-ranks:i --activation-offload-fraction:f "
     "--fine-grained-offloading-max-inflight-offloads:i",
     .needs = "--fine-grained-activation-offloading",
     .note = "offloading to the host"},
    {"--mtp-standalone",
     .needs = "--mtp-num-layers",
     .note = "multi-token prediction in a pipeline stage of its own"},
    {"--mtp-detach-heads",
     .needs = "--mtp-num-layers",
     .note = "multi-token prediction whose gradients end before the model"},
    {"--flash-attention-version:2|3|4",
     .needs = "--attention-backend=flash", .note = "flash-attn's kernels"},
    {"--apply-layernorm-1p", .note = "norm weights around zero"},
    {"--glu-linear-offset:f",
     .neutral = "0", .note = "offset of the gated unit"},
    {"--activation-func-clamp-value:f", .note = "clamped activation"},
    {"--rotary-interleaved", .note = "interleaved rotary embedding"},
    {"--qk-l2-norm", .note = "L2 norm of queries and keys"},
    {"--qk-clip", .note = "clipping of queries and keys"},
    {"--qk-clip-alpha:f --qk-clip-threshold:f",
     .needs = "--qk-clip", .note = "clipping of queries and keys"},
    {"--attention-output-gate", .note = "gated attention output"},
    {"--calculate-per-token-loss", .note = "loss per token"},
    {"--mla-down-proj-fusion",
     .needs = "--multi-latent-attention",
     .note = "fused down projections of Transformer Engine"},
    {"--cache-mla-latents",
     .needs = "--multi-latent-attention",
     .note = "of inference: Megatron-LM stops at it in training"},
    {"--experimental-attention-variant:gated_delta_net|dsa",
     .note = "attention variant"},
    {"--dsa-indexer-n-heads:i --dsa-indexer-head-dim:i --dsa-indexer-topk:i "
     "--dsa-indexer-topk-freq:i --dsa-indexer-skip-topk-offset:i "
     "--dsa-indexer-loss-coeff:f --dsa-indexer-use-sparse-loss "
     "--dsa-kernel-backend:none|tilelang|cudnn --dsa-indexer-rope-interleaved "
     "--dsa-indexer-k-norm-epsilon:f --dsa-indexer-k-norm-fp32 "
     "--linear-conv-kernel-dim:i --linear-key-head-dim:i "
     "--linear-value-head-dim:i --linear-num-key-heads:i "
     "--linear-num-value-heads:i --linear-attention-freq:s "
     "--no-dsa-indexer-rotate-activation "
     "--disable-dsa-indexer-rotate-activation --no-dsa-indexer-scoring-relu "
     "--disable-dsa-indexer-scoring-relu",
     .needs = "--experimental-attention-variant", .note = "attention variant"},
    {"--use-mup", .note = "maximal update parametrisation"},
    {"--mup-width-mult:f --mup-base-hidden-size:i --mup-embedding-mult:f "
     "--mup-output-mult:f --mup-base-head-dim:f --mup-attn-scale-power:f",
     .needs = "--use-mup", .note = "maximal update parametrisation"},
    {"--fused-residual-rmsnorm",
     .needs = "--num-experts",
     .note = "kernels of Transformer Engine"},
    {"--use-transformer-engine-op-fuser "
     "--use-te-activation-func --use-grouped-gemm-for-dense-mlp",
     .note = "kernels of Transformer Engine"},
    {"--fp8-format:e4m3|hybrid", .note = "FP8"},
    {"--fp8-recipe:tensorwise|delayed|mxfp8|blockwise|custom "
     "--fp8-quantizer-factory:s --fp8-margin:i --fp8-interval:i "
     "--fp8-amax-history-len:i --fp8-amax-compute-algo:most_recent|max "
     "--fp8-output-proj --fp8-param-gather --no-fp8-wgrad --disable-fp8-wgrad "
     "--first-last-layers-bf16 --num-layers-at-start-in-bf16:i "
     "--num-layers-at-end-in-bf16:i --keep-fp8-transpose-cache "
     "--reuse-grad-buf-for-mxfp8-param-ag",
     .needs = "--fp8-format", .note = "FP8"},
    {"--fp4-format:e2m1", .note = "FP4"},
    {"--fp4-recipe:nvfp4|custom --fp4-quantizer-factory:s --fp4-param-gather",
     .needs = "--fp4-format", .note = "FP4"},
    {"--te-precision-config-file:s --use-kitchen-attention "
     "--kitchen-config-file:s --kitchen-recipe-number:i",
     .note = "quantisation"},
    {"--kitchen-attention-backend:sdpa|fa",
     .needs = "--use-kitchen-attention", .note = "quantisation"},
    {"--overlap-moe-expert-parallel-comm "
     "--overlap-dispatch-backward-with-experts-wgrad "
     "--ep-overlap-early-attn-memory-release "
     "--use-fused-weighted-squared-relu --high-priority-a2a-comm-stream "
     "--moe-shared-expert-gate "
     "--moe-shared-expert-overlap --use-grouped-gemm-for-shared-expert "
     "--moe-shared-expert-glu-interleave-size:i --moe-enable-routing-replay "
     "--moe-router-padding-for-quantization --moe-router-padding-for-fp8 "
     "--moe-router-num-groups:i --moe-router-group-topk:i "
     "--moe-router-topk-scaling-factor:f "
     "--moe-router-score-function:softmax|sigmoid|sqrtsoftplus "
     "--moe-router-dtype:fp32|fp64 --moe-router-enable-expert-bias "
     "--moe-router-bias-update-rate:f --moe-router-quantile-balancing-ema:f "
     "--moe-router-force-load-balancing --moe-router-force-biased:f "
     "--moe-grouped-gemm --moe-single-grouped-weight "
     "--moe-single-grouped-bias --moe-z-loss-coeff:f --moe-input-jitter-eps:f "
     "--moe-enable-deepep "
     "--moe-flex-dispatcher-backend:deepep|hybridep|ncclep "
     "--moe-permute-fusion-into-hybridep "
     "--moe-hybridep-pad-uneven-dispatch-inputs --moe-per-layer-logging "
     "--moe-expert-capacity-factor:f --moe-pad-expert-input-to-capacity "
     "--moe-pad-experts-for-cuda-graph-inference "
     "--moe-token-drop-policy:probs|position --moe-layer-recompute "
     "--moe-permute-fusion --moe-router-fusion --moe-apply-probs-on-input "
     "--moe-latent-size:i --moe-flex-dispatcher-num-sms:i "
     "--moe-deepep-num-sms:i --moe-hybridep-num-sms:i "
     "--moe-hybridep-num-blocks-permute:i "
     "--moe-hybridep-num-blocks-unpermute:i "
     "--moe-hybridep-num-sms-preprocessing:i --moe-ncclep-static-shape "
     "--moe-ncclep-zero-copy --moe-mlp-glu-interleave-size:i "
     "--moe-expert-rank-capacity-factor:f --moe-paged-stash "
     "--moe-paged-stash-page-size:i "
     "--moe-paged-stash-buffer-size-factor-cuda:f "
     "--moe-paged-stash-buffer-size-factor-cpu:f "
     "--moe-use-upcycling "
     "--moe-upcycling-granularity:i --moe-routing-trace-path:s "
     "--moe-routing-trace-max-training-iters:i "
     "--moe-routing-trace-capture-logits "
     "--moe-routing-trace-capture-hidden-states "
     "--moe-routing-trace-dump-weights",
     .needs = "--num-experts", .note = "experts"},
    {"--enable-cuda-graph --external-cuda-graph --optimizer-cuda-graph",
     .note = "CUDA graphs"},
    {"--cuda-graph-impl:none|local|transformer_engine|full_iteration",
     .neutral = "none", .note = "CUDA graphs"},
    {"--cuda-graph-warmup-steps:i --cuda-graph-scope:+s "
     "--cuda-graph-modules:+s",
     .needs = "--cuda-graph-impl", .note = "CUDA graphs"},
    {"--te-rng-tracker", .note = "random state for CUDA graphs"},
    {"--no-clone-scatter-output-in-embedding "
     "--disable-clone-scatter-output-in-embedding",
     .needs = "--sequence-parallel",
     .note = "the embedding keeps its whole output"},
    {"--symmetric-ar-type:two_shot|one_shot|multimem_all_reduce",
     .note = "symmetric-memory all-reduce"},
    {"--mrope-section:+i", .note = "multimodal rotary embedding"},
    {"--is-hybrid-model --hybrid-layer-pattern:s --hybrid-override-pattern:s",
     .note = "state-space layers"},
    {"--mamba-state-dim:i --mamba-head-dim:i --mamba-num-groups:i "
     "--mamba-num-heads:i --disable-mamba-mem-eff-path "
     "--mamba-training-ssm-states-dtype:fp32|bf16",
     .needs = "--hybrid-layer-pattern", .note = "state-space layers"},
    {"--mlp-chunks-for-training:i", .neutral = "1", .note = "MLP in chunks"},
    {"--window-size:s", .needs = "--transformer-impl=local",
     .note = "sliding-window attention"},
    {"--window-attn-skip-freq:s",
     .needs = "--window-size", .note = "sliding-window attention"},
    {"--yarn-original-max-position-embeddings:i --yarn-beta-fast:f "
     "--yarn-beta-slow:f --yarn-correction-range-round-to-int "
     "--no-yarn-correction-range-round-to-int",
     .needs = "--position-embedding-type=yarn", .note = "YaRN"},
    {"--relative-attention-num-buckets:i --relative-attention-max-distance:i",
     .needs = "--position-embedding-type=relative",
     .note = "relative positions"},
    {"--no-rope-freq:s", .note = "layers without rotary embedding"},
    {"--no-position-embedding",
     .needs = "!--position-embedding-type=rope|none",
     .note = "deprecated; learned positions unless rope is given"},
    {"--onnx-safe:s", .note = "workarounds for ONNX"},
    {"--decoder-num-layers:i --decoder-seq-length:i",
     .note = "encoder-decoder models"},
    {"--muon-momentum:f --muon-no-split-qkv --muon-nesterov "
     "--muon-scale-mode:spectral|unit_rms_norm|shape_scaling "
     "--muon-fp32-matmul-prec:low|medium|high --muon-coefficient-type:s "
     "--muon-num-ns-steps:i --muon-tp-mode:blockwise|duplicated|distributed "
     "--muon-extra-scale-factor:f --muon-scalar-optimizer:adam|lion",
     .needs = "--optimizer=muon|dist_muon|adaptive_muon", .note = "Muon"},
    {"--lion-beta1:f --lion-beta2:f",
     .needs = "--optimizer=lion", .note = "Lion"},
    {"--no-use-layer-wise-param-layout",
     .needs = "--optimizer=muon|dist_muon|adaptive_muon|lion|soap",
     .note = "layer-wise optimizers"},
    {"--rampup-batch-size:3i --step-batch-size-schedule:s",
     .note = "batch sizes that change; the global batch size is estimated"},
    {"--decrease-batch-size-if-needed",
     .needs = "--rampup-batch-size", .note = "batch sizes that change"},
    {"--empty-unused-memory-level:0|1|2",
     .neutral = "0", .note = "emptying the cache between iterations"},
    {"--check-weight-hash-across-dp-replicas-interval:i "
     "--gpu-sniff-test-interval:i --check-for-large-grads",
     .note = "a check that allocates"},
    {"--log-params-norm --log-max-attention-logit",
     .note = "logging that allocates on the GPU"},
    {"--record-shapes", .needs = "--profile", .note = "autograd profiling"},
    {"--use-pytorch-profiler",
     .needs = "--profile", .note = "profilers take device memory"},
    {"--fp16-lm-cross-entropy", .note = "cross entropy in float16"},
    {"--perform-rl-step", .note = "reinforcement learning"},
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
     .needs = "--perform-rl-step", .note = "reinforcement learning"},
    {"--freeze-all-layers", .note = "frozen layers"},
    {"--skip-train", .note = "a job that does not train"},
    {"--load:s --pretrained-checkpoint:s",
     .note = "loading a checkpoint at the start"},
    {"--use-checkpoint-args --use-mp-args-from-checkpoint-args",
     .note = "flags kept in a checkpoint"},
    {"--yaml-cfg:s", .note = "flags in a YAML file"},
    {"--load-main-params-from-ckpt",
     .needs = "--load", .note = "loading a checkpoint at the start"},
    {"--save-activations-interval:i --save-wgrads-interval:i "
     "--save-dgrads-interval:i --save-tokens-per-expert-interval:i",
     .note = "saving activations or gradients"},
    {"--use-megatron-fsdp",
     .note = "fully sharded data parallelism"},
    {"--data-parallel-sharding-strategy:no_shard|optim|optim_grads|"
     "optim_grads_params --outer-dp-sharding-strategy:no_shard|optim "
     "--fsdp-double-buffer --fsdp-manual-registration "
     "--suggested-communication-unit-size:i --enable-full-sharding-in-hsdp "
     "--no-gradient-reduce-div-fusion "
     "--megatron-fsdp-main-params-dtype:fp32|bf16|fp16|auto "
     "--megatron-fsdp-main-grads-dtype:fp32|bf16|fp16|auto "
     "--megatron-fsdp-grad-comm-dtype:fp32|fp16|bf16|auto "
     "--megatron-fsdp-enable-fine-grained-param-gather "
     "--megatron-fsdp-max-pool-double-buffer "
     "--fsdp-db-use-persist-buf-on-alloc-fail",
     .needs = "--use-megatron-fsdp", .note = "fully sharded data parallelism"},
    {"--nccl-communicator-config-path:s", .note = "settings of communicators"},
    {"--use-sharp", .note = "in-network reduction"},
    {"--sharp-enabled-group:dp|dp_replica",
     .needs = "--use-sharp", .note = "in-network reduction"},
    {"--use-nccl-ub", .note = "registered communication buffers"},
    {"--disable-symmetric-registration",
     .needs = "--use-nccl-ub", .note = "registered communication buffers"},
    {"--create-all-gather-group", .note = "one more communicator"},
    {"--fake-process-group", .note = "a process group without peers"},
    {"--ddp-reduce-scatter-with-fp32-accumulation "
     "--ddp-param-name-patterns-for-fp32-local-accumulation:+s",
     .note = "gradient reduction with copies"},
    {"--disable-jit-fuser", .note = "compiled functions switched off"},
    {"--eval-micro-batch-size:i --full-validation --multiple-validation-sets",
     .note = "evaluation; training is estimated"},
    {"--test-mode", .note = "test mode"},
    {"--dataloader-inter-document-masking", .note = "packed documents"},
    {"--sft", .note = "fine-tuning with packed samples"},
    {"--sft-tokenizer-prompt-format:s",
     .needs = "--sft", .note = "fine-tuning"},
    {"--no-pad-vocab-size --disable-pad-vocab-size",
     .note = "a vocabulary that is not padded; the padded one is estimated"},
    {"--heterogeneous-layers-config-path:s "
     "--heterogeneous-layers-config-encoded-json:s",
     .note = "layers that differ"},
    {"--spec:*s", .note = "a layer specification of its own"},
    {"--logits-save-dir:s --logits-load-dir:s",
     .note = "distillation from logits"},
    {"--logits-save-top-k:i --logits-save-top-p:f --logits-save-top-p-min-k:i "
     "--logits-save-dtype:fp16|bf16|fp32",
     .needs = "--logits-save-dir", .note = "distillation from logits"},
    {"--logits-load-decode-threads:i --logits-load-prefetch-factor:i "
     "--logits-load-msc-prefetch-depth:i --logits-load-kd-loss-alpha:f "
     "--logits-load-ignore-errors",
     .needs = "--logits-load-dir", .note = "distillation from logits"},
    {"--inprocess-restart", .note = "restart within the process"},
    {"--inprocess-max-iterations:i --inprocess-monitor-thread-interval:f "
     "--inprocess-monitor-process-interval:f "
     "--inprocess-progress-watchdog-interval:f "
     "--inprocess-heartbeat-interval:f --inprocess-soft-timeout:f "
     "--inprocess-hard-timeout:f --inprocess-heartbeat-timeout:f "
     "--inprocess-barrier-timeout:f --inprocess-completion-timeout:f "
     "--inprocess-last-call-wait:f --inprocess-termination-grace-time:f "
     "--inprocess-granularity:node|rank --inprocess-active-world-size:i "
     "--inprocess-empty-cuda-cache",
     .needs = "--inprocess-restart", .note = "restart within the process"},
    {"--error-injection-rate:i", .neutral = "0", .note = "injected errors"},
    {"--error-injection-type:correct_result|transient_error|persistent_error",
     .needs = "--error-injection-rate", .note = "injected errors"},
    {"--export-model-type:s --export-legacy-megatron --export-te-mcore-model "
     "--export-default-te-spec --export-force-local-attention "
     "--export-kv-cache-quant:s --export-real-quant-cfg:s "
     "--export-quant-cfg:s --export-kd-teacher-load:s "
     "--export-kd-teacher-model-config:s --export-kd-teacher-ckpt-format:s "
     "--export-kd-cfg:s --finetune-hf-dataset:s --finetune-data-split:s "
     "--qad-train-target:s --freeze-base-for-mtp --export-qk-l2-norm "
     "--export-moe-apply-probs-on-input --export-offline-model "
     "--modelopt-enabled --enable-gpt-oss",
     .note = "model optimisation"},
    {"--vision-pretraining", .note = "vision models"},
    {"--output-bert-embeddings", .note = "BERT"},
    {.flags = NULL},
};
/* clang-format on */
