/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* The flags of Megatron-LM core_v0.19.0 that do not change a rank's device
 * memory, or only by scalars between steps, with the reason. Each was looked
 * up in the source where its value is used. */
/** clang-format off */
const me_flag_rule me_flags_no_effect[] = {
    {"--moe-router-bias-update-rate:f --moe-router-quantile-balancing-ema:f",
     .needs = "--num-experts", .note = "how far a step moves biases"},
    {"--qk-clip-alpha:f --qk-clip-threshold:f", .needs = "--qk-clip",
     .note = "by which number weights are multiplied"},
    {"--glu-linear-offset:f", .neutral = "0",
     .note = "a number that is added whatever it is"},
    {"--no-tp-comm-split-ag --disable-tp-comm-split-ag "
     "--no-tp-comm-split-rs --disable-tp-comm-split-rs",
     .needs = "--tp-comm-overlap",
     .note = "read by nobody since Transformer Engine 1.6"},
    {"--no-gradient-reduce-div-fusion", .needs = "--use-megatron-fsdp",
     .note = "gradients are scaled in place or by NCCL"},
    {"--enable-full-sharding-in-hsdp", .needs = "--use-megatron-fsdp",
     .note = "read nowhere"},
    {"--log-interval:i --log-throughput --log-progress "
     "--log-timers-to-tensorboard --no-log-loss-scale-to-tensorboard "
     "--disable-log-loss-scale-to-tensorboard "
     "--log-validation-ppl-to-tensorboard --log-memory-to-tensorboard "
     "--log-memory-interval:i --log-device-memory-used "
     "--log-world-size-to-tensorboard",
     .note = "numbers of the host or scalars that are there"},
    {"--timing-log-option:max|minmax|all",
     .note = "what is printed of a number a rank"},
    {"--tensorboard-dir:s --tensorboard-log-interval:i "
     "--tensorboard-queue-size:i --wandb-project:s --wandb-exp-name:s "
     "--wandb-save-dir:s --wandb-entity:s --logging-level:i --no-one-logger "
     "--one-logger-project:s --one-logger-run-name:s --one-logger-async "
     "--app-tag-run-name:s --app-tag-run-version:s "
     "--run-workload-inspector-server --config-logger-dir:s",
     .note = "logs of the host"},
    {"--log-energy --log-straggler --straggler-ctrlr-port:i "
     "--straggler-minmax-count:i --disable-straggler-on-startup",
     .note = "NVML and events; scalars are gathered between steps"},
    {"--profile --profile-step-start:i --profile-step-end:i "
     "--profile-ranks:+i --nvtx-ranges",
     .note = "marks for a profiler that is started around the job"},
    {"--pytorch-profiler-collect-shapes --pytorch-profiler-collect-callstack "
     "--pytorch-profiler-collect-chakra",
     .note = "what the profiler records on the host"},
    {"--record-memory-history --memory-snapshot-path:s",
     .note = "a history that the host keeps"},
    {"--lr-decay-style:constant|linear|cosine|inverse-square-root|WSD "
     "--lr-wsd-decay-style:exponential|linear|cosine|minus_sqrt "
     "--lr-decay-iters:i --lr-decay-samples:i --lr-wsd-decay-iters:i "
     "--lr-wsd-decay-samples:i --lr-warmup-fraction:f --lr-warmup-iters:i "
     "--lr-warmup-samples:i --lr-warmup-init:f "
     "--override-opt_param-scheduler --override-opt-param-scheduler "
     "--use-checkpoint-opt_param-scheduler "
     "--use-checkpoint-opt-param-scheduler --start-weight-decay:f "
     "--end-weight-decay:f --weight-decay-incr-style:constant|linear|cosine "
     "--lr:f --min-lr:f",
     .note = "Python numbers of the parameter groups"},
    // not-a-number too: FusedAdam asks nothing of them (Transformer Engine,
    // fused_adam.py), nor do optimizers that HybridDeviceOptimizer gives them by
    // groups
    {"--adam-beta1:f --adam-beta2:f --adam-eps:f --muon-momentum:f "
     "--muon-scale-mode:spectral|unit_rms_norm|shape_scaling "
     "--muon-coefficient-type:simple|quintic|polar_express|aol "
     "--muon-extra-scale-factor:f --lion-beta1:f --lion-beta2:f",
     .note = "numbers that the optimizer uses"},
    {"--no-use-layer-wise-param-layout",
     .note = "pretrain_gpt.py's models are wrapped without a layout anyway"},
    {"--min-loss-scale:f --loss-scale-window:f --hysteresis:i",
     .note = "when the loss scale moves; the first step taken counts anyway"},
    {"--save:s --save-interval:i --persistent-save-interval:i "
     "--save-retain-interval:i --save-params-interval:i",
     .note = "tensors go to the host one by one, between steps, as they are"},
    {"--non-persistent-save-interval:i "
     "--non-persistent-ckpt-type:global|local "
     "--non-persistent-global-ckpt-dir:s --non-persistent-local-ckpt-dir:s "
     "--non-persistent-local-ckpt-algo:fully_parallel|atomic "
     "--ckpt-format:torch|torch_dist|torch_dcp|fsdp_dtensor "
     "--no-ckpt-fully-parallel-save --ckpt-fully-parallel-save "
     "--ckpt-fully-parallel-save-process-group:dp|ep_dp "
     "--ckpt-assume-constant-structure --dist-ckpt-save-pre-mcore-014 "
     "--dist-ckpt-workers:i --dist-ckpt-format:s --use-dist-ckpt "
     "--verify-integrity --no-save-optim --no-save-rng",
     .note = "which rank writes what, and how its files look"},
    {"--async-save --async-strategy:nvrx|mcore --async-ckpt-cpu-priority:i "
     "--async-ckpt-io-priority:i --async-ckpt-use-cpu-shm",
     .note = "copies on the host are written by another process"},
    {"--ckpt-step:i --no-use-tokenizer-model-from-checkpoint-args "
     "--disable-use-tokenizer-model-from-checkpoint-args "
     "--auto-detect-ckpt-format "
     "--ckpt-fully-parallel-load-exchange-algo:broadcast|gather_rounds|"
     "gather_object "
     "--ckpt-fully-parallel-load-process-group:dp|ep_dp "
     "--no-ckpt-load-validate-sharding-integrity "
     "--disable-ckpt-load-validate-sharding-integrity "
     "--no-strict-fsdp-dtensor-load --disable-strict-fsdp-dtensor-load "
     "--dist-ckpt-strictness:assume_ok_unexpected|log_unexpected|log_all|"
     "raise_unexpected|raise_all|return_unexpected|return_all|ignore_all "
     "--no-stream-ckpt-dequant --disable-stream-ckpt-dequant "
     "--no-load-rng --override-ckpt-iteration:i",
     .note = "how a checkpoint is read: --load says that one is"},
    {"--ckpt-convert-format:torch|torch_dist --ckpt-convert-save:s "
     "--ckpt-convert-update-legacy-dist-opt-format",
     .note = "a checkpoint is written anew at the start, and the job ends"},
    {"--train-iters:i --train-samples:i --exit-interval:i "
     "--exit-duration-in-mins:i --exit-signal-handler "
     "--exit-signal:SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|"
     "SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|"
     "SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMIN|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|"
     "SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|"
     "SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ "
     "--exit-signal-handler-for-dataloader "
     "--exit-signal-handler-for-training --iterations-to-skip:+i",
     .note = "when the job ends; every iteration is like the second"},
    {"--train-sync-interval:i --manual-gc --manual-gc-interval:i "
     "--no-manual-gc-eval --disable-manual-gc-eval",
     .note = "the host waits or collects; no cycle holds tensors (measured)"},
    {"--result-rejected-tracker-filename:s --dump-param-to-param-group-map:s",
     .note = "files"},
    {"--use-flash-attn --use-mcore-models "
     "--apply-residual-connection-post-layernorm --openai-gelu",
     .note = "no line of core_v0.19.0 reads it"},
    {"--rampup-batch-size:3i",
     .note = "init_num_microbatches_calculator() of core_v0.19.0 passes it "
             "over"},
    {"--disable-jit-fuser",
     .note = "read after the functions were compiled: @jit_fuser has run at "
             "import"},
    {"--dataloader-type:single|cyclic|external", .note = "order of samples"},
    {"--fp16-lm-cross-entropy",
     .note = "GPTModel keeps it and reads it nowhere: the loss is float32's"},
    {"--mup-width-mult:f",
     .note = "made anew of hidden_size and mup_base_hidden_size"},
    {"--mup-base-head-dim:f --mup-attn-scale-power:f",
     .note = "numbers of the scores' scale"},
    {"--no-persist-layer-norm", .note = "which of Apex's kernels runs"},
    {"--seed:i --inference-rng-tracker --data-parallel-random-init",
     .note = "random numbers, parameters sent in place"},
    {"--no-initialization --init-method-std:f "
     "--embedding-init-method-std:f",
     .note = "values that are written in place"},
    {"--norm-epsilon:f --rotary-base:n "
     "--rotary-seq-len-interpolation-factor:n --rope-scaling-factor:f",
     .note = "a number that a kernel uses; tables keep their size"},
    {"--yarn-beta-fast:f --yarn-beta-slow:f "
     "--yarn-correction-range-round-to-int "
     "--no-yarn-correction-range-round-to-int",
     .needs = "--position-embedding-type=yarn",
     .note = "numbers that tables are made with; they keep their size"},
    {"--relative-attention-num-buckets:i --relative-attention-max-distance:i",
     .note = "GPTModel has no relative positions, even where they are chosen"},
    {"--rotary-scaling-factor:f --mscale:f --mscale-all-dim:f",
     .needs = "--multi-latent-attention --position-embedding-type=yarn",
     .note = "a number that a kernel uses; tables keep their size"},
    {"--mtp-loss-scaling-factor:f", .needs = "--mtp-num-layers",
     .note = "a number that a kernel uses"},
    {"--disable-bf16-reduced-precision-matmul",
     .note = "cuBLAS accumulates in another type, in the same workspace"},
    {"--cpu-offloading-retain-pinned-cpu-buffers",
     .note = "pinned memory of the host"},
    {"--fine-grained-offloading-max-inflight-offloads:i",
     .needs = "--fine-grained-activation-offloading",
     .note = "when the GPU waits for copies to the host"},
    {"--high-priority-a2a-comm-stream", .note = "priority of a stream"},
    {"--inference-batch-times-seqlen-threshold:i "
     "--inference-coordinator-port:i --inference-cuda-graph-all-prefills "
     "--inference-cuda-graph-max-tokens:i "
     "--inference-cuda-graph-scope:none|layer|block "
     "--inference-disable-ep-consensus "
     "--inference-disable-triton-nvls-kernels --inference-dynamic-batching "
     "--inference-dynamic-batching-async-sched-mode:legacy|async "
     "--inference-dynamic-batching-block-size:i "
     "--inference-dynamic-batching-buffer-size-gb:f "
     "--inference-dynamic-batching-cuda-graph-mixed-prefill-count:i "
     "--inference-dynamic-batching-cuda-graph-sizing-distribution:exponential|"
     "linear "
     "--inference-dynamic-batching-logprobs-mode:raw_logprobs|"
     "processed_logprobs "
     "--inference-dynamic-batching-mamba-memory-ratio:f "
     "--inference-dynamic-batching-max-requests:i "
     "--inference-dynamic-batching-max-tokens:i "
     "--inference-dynamic-batching-num-cuda-graphs:i "
     "--inference-dynamic-batching-paused-buffer-size-gb:f "
     "--inference-dynamic-batching-prefix-caching "
     "--inference-dynamic-batching-prefix-caching-coordinator-policy:"
     "longest_prefix|first_prefix_block|load_balanced "
     "--inference-dynamic-batching-prefix-caching-eviction-policy:ref_zero|lru "
     "--inference-dynamic-batching-prefix-caching-mamba-gb:f "
     "--inference-dynamic-batching-prefix-caching-routing-alpha:f "
     "--inference-dynamic-batching-sampling-backend:torch|flashinfer "
     "--inference-dynamic-batching-track-generated-token-events "
     "--inference-dynamic-batching-track-paused-request-events "
     "--inference-dynamic-batching-unified-memory-level:0|1 "
     "--inference-fuse-tp-communication "
     "--inference-grouped-gemm-backend:flashinfer|torch|vllm "
     "--inference-logging-step-interval:i --inference-max-requests:i "
     "--inference-max-seq-length:i "
     "--inference-moe-disable-fused-quant-kernels "
     "--inference-moe-token-dispatcher-type:nccl|nvls --inference-shards:s "
     "--inference-text-gen-server-logging "
     "--inference-use-synchronous-zmq-collectives --inference-wandb-logging "
     "--mamba-inference-conv-states-dtype:bf16|fp16|fp32 "
     "--mamba-inference-ssm-states-dtype:bf16|fp16|fp32 "
     "--no-inference-disable-ep-consensus "
     "--no-inference-dynamic-batching-prefix-caching "
     "--no-inference-text-gen-server-logging "
     "--no-inference-use-synchronous-zmq-collectives "
     "--no-inference-wandb-logging --mlp-chunks-for-prefill:i --flash-decode "
     "--nccl-all-reduce-for-prefill --max-tokens-to-oom:i "
     "--use-legacy-static-engine --decode-only-cuda-graphs "
     "--enable-chunked-prefill --num-speculative-tokens:i "
     "--use-same-sampling-seed-across-dp-ranks",
     .note = "read where the model serves, not where it trains"},
    {"--distributed-timeout-minutes:i "
     "--distributed-timeout-seconds-after-init:i --local-rank:i "
     "--lazy-mpu-init:*s --disable-gloo-process-groups",
     .note = "process groups of the host"},
    {"--high-priority-stream-groups:+s",
     .note = "priority of the streams of communicators"},
    {"--flight-recorder-dump-path:s --flight-recorder-trace-buffer-size:i "
     "--no-flight-recorder-dump-on-timeout "
     "--disable-flight-recorder-dump-on-timeout "
     "--flight-recorder-include-stack-trace "
     "--no-flight-recorder-include-only-active "
     "--disable-flight-recorder-include-only-active "
     "--no-flight-recorder-extra-dump-on-exec "
     "--disable-flight-recorder-extra-dump-on-exec",
     .note = "collectives are recorded on the host"},
    {"--fp8-margin:i --fp8-interval:i --fp8-amax-compute-algo:most_recent|max",
     .note = "numbers of FP8's scales"},
    {"--no-fp8-wgrad --disable-fp8-wgrad",
     .note = "Transformer Engine 2.17 does not look at it"},
    {"--no-align-param-gather --ddp-average-in-collective",
     .note = "when parameters are gathered and gradients scaled, both in "
             "place"},
    {"--eval-interval:i --start-eval-at-iter:i --validation-set-names:+s",
     .note = "when a job evaluates besides at its end, and what is printed"},
    {"--multiple-validation-sets",
     .note = "evaluations one after the other, each like the first"},
    {"--data-path:*s --phase-transition-iterations:t --split:s "
     "--train-data-path:*s --valid-data-path:*s --test-data-path:*s "
     "--data-args-path:s --per-split-data-args-path:s "
     "--per-dataset-sequences-path:s --dataloader-fast-cache-load "
     "--dataloader-defer-npy-index-mmap --data-cache-path:s "
     "--no-mmap-bin-files --mock-data --sample-rate:f --mask-prob:f "
     "--short-seq-prob:f --num-workers:i --num-dataset-builder-threads:i "
     "--object-storage-cache-path:s --mid-level-dataset-surplus:f "
     "--allow-ambiguous-pad-tokens --fim-data --fim-rate:f --fim-spm-rate:f "
     "--fim-split-sample:s --fim-fragment-rate:f --fim-no-prefix:s "
     "--fim-prefix-token:s --fim-middle-token:s --fim-suffix-token:s "
     "--fim-pad-token:s --fim-eod-token:s",
     .note = "data sets of the host; batches keep their shape"},
    {"--reset-position-ids --reset-attention-mask --eod-mask-loss",
     .note = "other numbers in the batch's tensors"},
    {"--vocab-file:s --merge-file:s --vocab-extra-ids:i --tokenizer-model:s "
     "--tokenizer-metadata:s --tokenizer-special-tokens:+s "
     "--tiktoken-pattern:v1|v2 --tiktoken-num-special-tokens:i "
     "--tokenizer-sentencepiece-legacy "
     "--no-tokenizer-sentencepiece-ignore-extra-whitespaces "
     "--disable-tokenizer-sentencepiece-ignore-extra-whitespaces "
     "--tokenizer-hf-no-use-fast --tokenizer-hf-no-include-special-tokens "
     "--trust-remote-code --null-tokenizer-eod-id:i "
     "--null-tokenizer-pad-id:i --chat-template:s",
     .note = "the tokenizer, whose vocabulary model.vocab_size says"},
    {"--adlr-autoresume --adlr-autoresume-interval:i",
     .note = "when the job starts again"},
    {"--bert-embedder-type:megatron|huggingface --ict-head-size:i "
     "--swin-backbone-type:tiny|base|h3 --patch-dim:i "
     "--retriever-score-scaling --ict-load:s --indexer-batch-size:i "
     "--dino-freeze-last-layer:f --block-data-path:s "
     "--dino-bottleneck-size:i "
     "--vision-pretraining-type:classify|inpaint|dino "
     "--biencoder-projection-dim:i --num-channels:i --titles-data-path:s "
     "--dino-warmup-teacher-temp-epochs:i --dino-head-hidden-size:i "
     "--dino-local-img-size:i --bert-no-binary-head --dino-norm-last-layer "
     "--classes-fraction:f --dino-teacher-temp:f --data-per-class-fraction:f "
     "--evidence-data-path:s --mask-type:random|row --bert-load:s "
     "--mask-factor:f --dino-warmup-teacher-temp:f --use-one-sent-docs "
     "--query-in-block-prob:f --biencoder-shared-query-context-model "
     "--embedding-path:s --img-h:i --vision-backbone-type:vit|mit|swin "
     "--no-data-sharding --num-classes:i --indexer-log-interval:i "
     "--iter-per-epoch:i --head-lr-mult:f --dino-local-crops-number:i "
     "--retriever-report-topk-accuracies:+i --img-w:i",
     .note = "of BERT, retrieval or vision models; a GPT reads none"},
    {"--enable-ft-package --calc-ft-timeouts --ft-num-warmup-iters:i "
     "--fault-injector-ranks:s --fault-injector-num-ranks:i "
     "--fault-injector-fault-types:s --fault-injector-fault-probabilities:s "
     "--fault-injector-fault-delay:f "
     "--fault-injector-delay-start-iteration:i "
     "--fault-injector-mtti-seconds:f --fault-injector-offset-seconds:f "
     "--fault-injector-seed:i",
     .note = "heartbeats and planned faults of processes"},
    {"--rerun-mode:disabled|validate_results|report_stats "
     "--check-for-spiky-loss",
     .note = "an iteration is run again, or scalars are looked at"},
    {"--enable-msc --disable-msc", .note = "where files lie"},
    {"--use-torch-optimizer-for-cpu-offload --no-pin-cpu-params",
     .needs = "--optimizer-cpu-offload",
     .note = "nothing reads it (core/optimizer/__init__.py, "
             "hybrid_optimizer.py)"},
    {.flags = NULL},
};
/* clang-format on */
