/**
 * @file
 * The choices that a model and its training are made of, named as Megatron-LM
 * and PyTorch name them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_CHOICES_H
#define MEMEST_MODEL_CHOICES_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum me_normalization {
    ME_NORMALIZATION_LAYER_NORM,
    ME_NORMALIZATION_RMS_NORM
} me_normalization;

typedef enum me_activation {
    ME_ACTIVATION_GELU,
    ME_ACTIVATION_SWIGLU,
    ME_ACTIVATION_QUICK_GEGLU,
    ME_ACTIVATION_SQUARED_RELU
} me_activation;

typedef enum me_position_embedding {
    ME_POSITION_LEARNED_ABSOLUTE,
    ME_POSITION_ROPE,
    ME_POSITION_NONE
} me_position_embedding;

/** Rotary embedding of multi-latent attention. */
typedef enum me_rope_type {
    ME_ROPE_TYPE_ROPE,
    ME_ROPE_TYPE_YARN
} me_rope_type;

typedef enum me_core_attention_kind {
    ME_CORE_ATTENTION_UNFUSED,
    ME_CORE_ATTENTION_SDPA_FLASH
} me_core_attention_kind;

typedef enum me_norm_impl {
    ME_NORM_IMPL_TORCH
} me_norm_impl;

typedef enum me_optimizer_impl {
    ME_OPTIMIZER_TORCH_FOREACH, /**< multi-tensor kernels */
    ME_OPTIMIZER_TORCH_FUSED,
    ME_OPTIMIZER_TORCH_FOR_LOOP, /**< one parameter after the other */
    ME_OPTIMIZER_FUSED           /**< Transformer Engine's */
} me_optimizer_impl;

/** Whose training loop a job runs. */
typedef enum me_framework {
    ME_FRAMEWORK_MEGATRON,
    ME_FRAMEWORK_TORCH
} me_framework;

/** How plain PyTorch spreads a model over the ranks of a batch. */
typedef enum me_data_parallel {
    ME_DATA_PARALLEL_NONE,
    ME_DATA_PARALLEL_DDP,        /**< DistributedDataParallel */
    ME_DATA_PARALLEL_FULLY_SHARD /**< FSDP2 */
} me_data_parallel;

/** The kernel of scaled_dot_product_attention for 16-bit heads. */
typedef enum me_sdpa_backend {
    ME_SDPA_CUDNN,
    ME_SDPA_FLASH
} me_sdpa_backend;

/** What a plain PyTorch job's loss is given besides the model's output. */
typedef enum me_torch_target {
    ME_TORCH_TARGET_OUTPUT, /**< of the output's shape and type; of pipelines */
    ME_TORCH_TARGET_LABELS, /**< int64 of the input's shape */
    ME_TORCH_TARGET_CLASSES /**< int64, one a sample */
} me_torch_target;

/** Who makes a micro-batch's data, for predicted times. */
typedef enum me_loader {
    ME_LOADER_NONE,
    ME_LOADER_MOCK_GPT
} me_loader;

/** Megatron-LM's adam is AdamW, torch.optim.Adam where a plain PyTorch job says
 *  it. */
typedef enum me_optimizer_kind {
    ME_OPTIMIZER_ADAM,
    ME_OPTIMIZER_SGD,
    ME_OPTIMIZER_ADAMW
} me_optimizer_kind;

typedef enum me_recompute {
    ME_RECOMPUTE_NONE,
    ME_RECOMPUTE_SELECTIVE,
    ME_RECOMPUTE_FULL
} me_recompute;

typedef enum me_recompute_method {
    ME_RECOMPUTE_UNIFORM,
    ME_RECOMPUTE_BLOCK
} me_recompute_method;

typedef enum me_load_balancing {
    ME_LOAD_BALANCING_NONE,
    ME_LOAD_BALANCING_AUX_LOSS
} me_load_balancing;

typedef enum me_token_dispatcher {
    ME_DISPATCHER_ALL_GATHER,
    ME_DISPATCHER_ALL_TO_ALL
} me_token_dispatcher;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_MODEL_CHOICES_H */
