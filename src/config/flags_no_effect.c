/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* The flags of Megatron-LM core_v0.19.0 that do not change memory, by reason.
 * Read off its argument parser. */
/* clang-format off */
const me_flag_rule me_flags_no_effect[] = {
    {"-h --help", .note = "asks for help"},
    {"--log-interval:i --log-throughput --log-progress "
     "--timing-log-level:0|1|2 --timing-log-option:max|minmax|all "
     "--tensorboard-dir:s --tensorboard-log-interval:i "
     "--tensorboard-queue-size:i --log-timers-to-tensorboard "
     "--no-log-loss-scale-to-tensorboard "
     "--disable-log-loss-scale-to-tensorboard "
     "--log-validation-ppl-to-tensorboard --log-memory-to-tensorboard "
     "--log-memory-interval:i --log-device-memory-used "
     "--no-barrier-with-level-1-timing --log-world-size-to-tensorboard "
     "--wandb-project:s --wandb-exp-name:s --wandb-save-dir:s "
     "--wandb-entity:s --logging-level:i --log-energy --log-straggler "
     "--straggler-ctrlr-port:i --straggler-minmax-count:i "
     "--disable-straggler-on-startup --no-one-logger --one-logger-project:s "
     "--one-logger-run-name:s --one-logger-async --app-tag-run-name:s "
     "--app-tag-run-version:s --run-workload-inspector-server "
     "--config-logger-dir:s",
     .note = "logging"},
    {"--profile --profile-step-start:i --profile-step-end:i "
     "--pytorch-profiler-collect-shapes --pytorch-profiler-collect-callstack "
     "--pytorch-profiler-collect-chakra --profile-ranks:+i "
     "--record-memory-history --memory-snapshot-path:s --nvtx-ranges",
     .note = "profiling"},
    {"--lr-decay-style:constant|linear|cosine|inverse-square-root|WSD "
     "--lr-wsd-decay-style:exponential|linear|cosine|minus_sqrt "
     "--lr-decay-iters:i --lr-decay-samples:i --lr-wsd-decay-iters:i "
     "--lr-wsd-decay-samples:i --lr-warmup-fraction:f --lr-warmup-iters:i "
     "--lr-warmup-samples:i --lr-warmup-init:f --override-opt_param-scheduler "
     "--override-opt-param-scheduler --use-checkpoint-opt_param-scheduler "
     "--use-checkpoint-opt-param-scheduler --start-weight-decay:f "
     "--end-weight-decay:f --weight-decay-incr-style:constant|linear|cosine "
     "--lr:f --min-lr:f",
     .note = "schedule of learning rate and decay"},
    {"--use-torch-optimizer-for-cpu-offload --no-pin-cpu-params",
     .needs = "--optimizer-cpu-offload",
     .note = "nothing reads it (core/optimizer/__init__.py, "
             "hybrid_optimizer.py)"},
    {"--adam-beta1:f --adam-beta2:f --adam-eps:f",
     .note = "a number that the optimizer uses"},
    {"--min-loss-scale:f --loss-scale-window:f "
     "--hysteresis:i",
     .note = "values of the loss scale"},
    {"--save:s --save-interval:i --persistent-save-interval:i "
     "--save-params-interval:i --save-retain-interval:i",
     .note = "saving checkpoints, between iterations"},
    {"--non-persistent-save-interval:i "
     "--non-persistent-ckpt-type:global|local|in_memory "
     "--non-persistent-global-ckpt-dir:s --non-persistent-local-ckpt-dir:s "
     "--non-persistent-local-ckpt-algo:fully_parallel|atomic --finetune "
     "--ckpt-step:i --no-use-tokenizer-model-from-checkpoint-args "
     "--disable-use-tokenizer-model-from-checkpoint-args "
     "--exit-on-missing-checkpoint "
     "--ckpt-format:torch|torch_dist|torch_dcp|fsdp_dtensor "
     "--auto-detect-ckpt-format --ckpt-convert-format:torch|torch_dist "
     "--ckpt-convert-save:s --ckpt-convert-update-legacy-dist-opt-format "
     "--no-ckpt-fully-parallel-save --async-save --async-strategy:nvrx|mcore "
     "--use-persistent-ckpt-worker --async-ckpt-cpu-priority:i "
     "--async-ckpt-io-priority:i --async-ckpt-use-cpu-shm "
     "--ckpt-fully-parallel-load "
     "--ckpt-fully-parallel-load-exchange-algo:broadcast|gather_rounds|"
     "gather_object --ckpt-fully-parallel-save-process-group:dp|ep_dp "
     "--ckpt-fully-parallel-load-process-group:dp|ep_dp "
     "--ckpt-assume-constant-structure "
     "--no-ckpt-load-validate-sharding-integrity "
     "--disable-ckpt-load-validate-sharding-integrity "
     "--no-strict-fsdp-dtensor-load --disable-strict-fsdp-dtensor-load "
     "--dist-ckpt-strictness:assume_ok_unexpected|log_unexpected|log_all|"
     "raise_unexpected|raise_all|return_unexpected|return_all|ignore_all "
     "--dist-ckpt-save-pre-mcore-014 --dist-ckpt-optim-fully-reshardable "
     "--distrib-optim-fully-reshardable-mem-efficient --replication "
     "--replication-jump:i --replication-factor:i --verify-integrity "
     "--no-stream-ckpt-dequant --disable-stream-ckpt-dequant --no-save-optim "
     "--no-save-rng --no-load-optim --no-load-rng --override-ckpt-iteration:i "
     "--use-dist-ckpt --dist-ckpt-format:s --dist-ckpt-workers:i "
     "--ckpt-fully-parallel-save",
     .note = "how checkpoints are written or read"},
    {"--train-iters:i --train-samples:i --exit-interval:i "
     "--exit-duration-in-mins:i --exit-signal-handler --exit-signal:s "
     "--exit-signal-handler-for-dataloader --exit-signal-handler-for-training "
     "--iterations-to-skip:+i",
     .note = "length of the run"},
    {"--train-sync-interval:i --manual-gc --manual-gc-interval:i "
     "--no-manual-gc-eval --disable-manual-gc-eval",
     .note = "timing on the host"},
    {"--result-rejected-tracker-filename:s --dump-param-to-param-group-map:s",
     .note = "files"},
    {"--use-flash-attn --use-mcore-models "
     "--apply-residual-connection-post-layernorm",
     .note = "no longer used by Megatron-LM"},
    {"--dataloader-type:single|cyclic|external", .note = "order of samples"},
    {"--no-persist-layer-norm", .note = "kernels of Apex only"},
    {"--seed:i --inference-rng-tracker --data-parallel-random-init",
     .note = "random numbers"},
    {"--init-method-xavier-uniform --no-initialization --init-method-std:f "
     "--embedding-init-method-std:f",
     .note = "initial values"},
    {"--norm-epsilon:f --rotary-base:n "
     "--rotary-seq-len-interpolation-factor:n --use-rope-scaling "
     "--rope-scaling-factor:f",
     .note = "a number that a kernel uses"},
    {"--rotary-scaling-factor:f --mscale:f --mscale-all-dim:f",
     .needs = "--multi-latent-attention",
     .note = "a number that a kernel uses"},
    {"--mtp-loss-scaling-factor:f",
     .needs = "--mtp-num-layers", .note = "a number that a kernel uses"},
    {"--mtp-hybrid-override-pattern:s", .note = "of hybrid models"},
    {"--disable-bf16-reduced-precision-matmul",
     .note = "precision of matrix products"},
    {"--mlp-chunks-for-prefill:i --flash-decode "
     "--inference-cuda-graph-scope:none|layer|block "
     "--nccl-all-reduce-for-prefill --inference-fuse-tp-communication "
     "--inference-disable-triton-nvls-kernels "
     "--inference-grouped-gemm-backend:flashinfer|torch|vllm "
     "--inference-moe-disable-fused-quant-kernels "
     "--inference-moe-token-dispatcher-type:nccl|nvls "
     "--inference-batch-times-seqlen-threshold:i --inference-max-requests:i "
     "--inference-max-seq-length:i --inference-dynamic-batching "
     "--inference-dynamic-batching-buffer-size-gb:f "
     "--inference-dynamic-batching-paused-buffer-size-gb:f "
     "--inference-dynamic-batching-mamba-memory-ratio:f "
     "--inference-dynamic-batching-block-size:i "
     "--inference-dynamic-batching-max-requests:i "
     "--inference-dynamic-batching-max-tokens:i "
     "--inference-dynamic-batching-num-cuda-graphs:i "
     "--inference-dynamic-batching-track-paused-request-events "
     "--inference-dynamic-batching-track-generated-token-events "
     "--inference-cuda-graph-all-prefills --inference-cuda-graph-max-tokens:i "
     "--inference-dynamic-batching-unified-memory-level:0|1 "
     "--inference-dynamic-batching-prefix-caching "
     "--inference-dynamic-batching-prefix-caching-eviction-policy:ref_zero|"
     "lru "
     "--inference-dynamic-batching-prefix-caching-coordinator-policy:"
     "longest_prefix|first_prefix_block|load_balanced "
     "--inference-dynamic-batching-prefix-caching-routing-alpha:f "
     "--inference-dynamic-batching-prefix-caching-mamba-gb:f "
     "--inference-dynamic-batching-cuda-graph-mixed-prefill-count:i "
     "--inference-dynamic-batching-cuda-graph-sizing-distribution:exponential|"
     "linear --inference-dynamic-batching-sampling-backend:torch|flashinfer "
     "--inference-dynamic-batching-async-sched-mode:legacy|async "
     "--inference-dynamic-batching-logprobs-mode:raw_logprobs|"
     "processed_logprobs --inference-logging-step-interval:i "
     "--inference-text-gen-server-logging --inference-wandb-logging "
     "--inference-coordinator-port:i "
     "--inference-use-synchronous-zmq-collectives "
     "--inference-disable-ep-consensus --inference-shards:s "
     "--max-tokens-to-oom:i --bert-embedder-type:megatron|huggingface "
     "--use-legacy-static-engine --decode-only-cuda-graphs "
     "--enable-chunked-prefill --num-speculative-tokens:i "
     "--no-inference-dynamic-batching-prefix-caching "
     "--use-same-sampling-seed-across-dp-ranks "
     "--no-inference-text-gen-server-logging --no-inference-wandb-logging "
     "--mamba-inference-conv-states-dtype:bf16|fp16|fp32 "
     "--mamba-inference-ssm-states-dtype:bf16|fp16|fp32 "
     "--no-inference-use-synchronous-zmq-collectives "
     "--no-inference-disable-ep-consensus",
     .note = "inference only"},
    {"--distributed-timeout-minutes:i "
     "--distributed-timeout-seconds-after-init:i --local-rank:i "
     "--lazy-mpu-init --disable-gloo-process-groups "
     "--high-priority-stream-groups:+s",
     .note = "process groups on the host"},
    {"--flight-recorder-dump-path:s --flight-recorder-trace-buffer-size:i "
     "--no-flight-recorder-dump-on-timeout "
     "--disable-flight-recorder-dump-on-timeout "
     "--flight-recorder-include-stack-trace "
     "--no-flight-recorder-include-only-active "
     "--disable-flight-recorder-include-only-active "
     "--no-flight-recorder-extra-dump-on-exec "
     "--disable-flight-recorder-extra-dump-on-exec",
     .note = "debugging of collectives"},
    {"--openai-gelu", .note = "read by nothing: gelu stays what it is"},
    {"--no-align-param-gather --ddp-average-in-collective",
     .note = "when and how gradients are averaged, in place"},
    {"--eval-iters:i --eval-interval:i --start-eval-at-iter:i "
     "--eval-global-batch-size:i --validation-set-names:+s",
     .note = "evaluation keeps less than training"},
    {"--data-path:*s --phase-transition-iterations:s --split:s "
     "--train-data-path:*s --valid-data-path:*s --test-data-path:*s "
     "--data-args-path:s --per-split-data-args-path:s "
     "--per-dataset-sequences-path:s --dataloader-fast-cache-load "
     "--dataloader-defer-npy-index-mmap --data-cache-path:s "
     "--no-mmap-bin-files --mock-data --sample-rate:f --mask-prob:f "
     "--short-seq-prob:f --num-workers:i --reset-position-ids "
     "--reset-attention-mask --eod-mask-loss --num-dataset-builder-threads:i "
     "--object-storage-cache-path:s --mid-level-dataset-surplus:f "
     "--allow-ambiguous-pad-tokens --fim-data --fim-rate:f --fim-spm-rate:f "
     "--fim-split-sample:s --fim-fragment-rate:f --fim-no-prefix:s "
     "--fim-prefix-token:s --fim-middle-token:s --fim-suffix-token:s "
     "--fim-pad-token:s --fim-eod-token:s",
     .note = "data on the host"},
    {"--vocab-file:s --merge-file:s --vocab-extra-ids:i --tokenizer-model:s "
     "--tokenizer-metadata:s --tokenizer-special-tokens:+s "
     "--tiktoken-pattern:v1|v2 --tiktoken-num-special-tokens:i "
     "--tokenizer-sentencepiece-legacy "
     "--no-tokenizer-sentencepiece-ignore-extra-whitespaces "
     "--disable-tokenizer-sentencepiece-ignore-extra-whitespaces "
     "--tokenizer-hf-no-use-fast --tokenizer-hf-no-include-special-tokens "
     "--trust-remote-code --null-tokenizer-eod-id:i --null-tokenizer-pad-id:i "
     "--chat-template:s",
     .note = "tokenizer on the host"},
    {"--adlr-autoresume --adlr-autoresume-interval:i", .note = "restarting"},
    {"--ict-head-size:i --biencoder-projection-dim:i "
     "--biencoder-shared-query-context-model --ict-load:s --bert-load:s "
     "--titles-data-path:s --query-in-block-prob:f --use-one-sent-docs "
     "--evidence-data-path:s --retriever-report-topk-accuracies:+i "
     "--retriever-score-scaling --block-data-path:s --embedding-path:s "
     "--indexer-batch-size:i --indexer-log-interval:i --bert-no-binary-head "
     "--num-classes:i --img-h:i --img-w:i --num-channels:i --patch-dim:i "
     "--classes-fraction:f --data-per-class-fraction:f --no-data-sharding "
     "--head-lr-mult:f --vision-pretraining-type:classify|inpaint|dino "
     "--vision-backbone-type:vit|mit|swin --swin-backbone-type:tiny|base|h3 "
     "--mask-type:random|row --mask-factor:f --iter-per-epoch:i "
     "--dino-local-img-size:i --dino-local-crops-number:i "
     "--dino-head-hidden-size:i --dino-bottleneck-size:i "
     "--dino-freeze-last-layer:f --dino-norm-last-layer "
     "--dino-warmup-teacher-temp:f --dino-teacher-temp:f "
     "--dino-warmup-teacher-temp-epochs:i",
     .note = "not a GPT flag"},
    {"--enable-experimental", .note = "only allows other flags"},
    {"--enable-ft-package --calc-ft-timeouts --ft-num-warmup-iters:i "
     "--fault-injector-ranks:s --fault-injector-num-ranks:i "
     "--fault-injector-fault-types:s --fault-injector-fault-probabilities:s "
     "--fault-injector-fault-delay:f --fault-injector-delay-start-iteration:i "
     "--fault-injector-mtti-seconds:f --fault-injector-offset-seconds:f "
     "--fault-injector-seed:i",
     .note = "fault tolerance"},
    {"--rerun-mode:disabled|validate_results|report_stats "
     "--check-for-spiky-loss",
     .note = "checks on scalars"},
    {"--enable-msc --disable-msc", .note = "storage"},
    {.flags = NULL},
};
/* clang-format on */
