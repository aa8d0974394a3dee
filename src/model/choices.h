/**
 * @file
 * The choices that a model and its training are made of, named as Megatron-LM
 * and PyTorch name them. A list says all that there is to say of each: the
 * constant, the word that options know it by, and the title that reports give
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_CHOICES_H
#define MEMEST_MODEL_CHOICES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One of an enumeration; an array of them ends with a word that is NULL. */
typedef struct me_choice {
    const char *word;  /**< of an option's value */
    const char *title; /**< as reports write it */
    int value;         /**< the constant */
} me_choice;

/** The word and the title of @p value, which is one of @p choices; static. */
const char *me_choice_word(const me_choice *choices, int value);
const char *me_choice_title(const me_choice *choices, int value);

/** X(constant, word, title) of each list below: the constant. */
#define ME_CHOICE_CONSTANT(constant, word, title) constant,

/** Whose training loop a job runs. */
#define ME_FRAMEWORK_LIST(X)                                                   \
    X(ME_FRAMEWORK_MEGATRON, "megatron", "Megatron-LM")                        \
    X(ME_FRAMEWORK_TORCH, "torch", "PyTorch")

typedef enum me_framework {
    ME_FRAMEWORK_LIST(ME_CHOICE_CONSTANT)
} me_framework;

extern const me_choice me_framework_choices[];

#define ME_NORMALIZATION_LIST(X)                                               \
    X(ME_NORMALIZATION_LAYER_NORM, "LayerNorm", "LayerNorm")                   \
    X(ME_NORMALIZATION_RMS_NORM, "RMSNorm", "RMSNorm")

typedef enum me_normalization {
    ME_NORMALIZATION_LIST(ME_CHOICE_CONSTANT)
} me_normalization;

extern const me_choice me_normalization_choices[];

/** Where a sub-layer's norms are: before its mixer, after it, or both. */
#define ME_NORM_PLACEMENT_LIST(X)                                              \
    X(ME_NORMS_PRE, "pre", "before")                                           \
    X(ME_NORMS_POST, "post", "after")                                          \
    X(ME_NORMS_BOTH, "both", "before and after")

typedef enum me_norm_placement {
    ME_NORM_PLACEMENT_LIST(ME_CHOICE_CONSTANT)
} me_norm_placement;

extern const me_choice me_norm_placement_choices[];

/** geglu is a gated gelu that nothing fuses, Gemma's. */
#define ME_ACTIVATION_LIST(X)                                                  \
    X(ME_ACTIVATION_GELU, "gelu", "gelu")                                      \
    X(ME_ACTIVATION_SWIGLU, "swiglu", "swiglu")                                \
    X(ME_ACTIVATION_QUICK_GEGLU, "quick_geglu", "quick geglu")                 \
    X(ME_ACTIVATION_GEGLU, "geglu", "geglu")                                   \
    X(ME_ACTIVATION_SQUARED_RELU, "squared_relu", "squared relu")

typedef enum me_activation {
    ME_ACTIVATION_LIST(ME_CHOICE_CONSTANT)
} me_activation;

extern const me_choice me_activation_choices[];

/** Does it take two halves of what the MLP's first layer makes? */
bool me_is_gated_activation(me_activation activation);

/** GPTModel makes nothing of relative ones, which T5's model has. */
#define ME_POSITION_EMBEDDING_LIST(X)                                          \
    X(ME_POSITION_LEARNED_ABSOLUTE, "learned_absolute", "learned_absolute")    \
    X(ME_POSITION_ROPE, "rope", "rope")                                        \
    X(ME_POSITION_YARN, "yarn", "yarn")                                        \
    X(ME_POSITION_RELATIVE, "relative", "relative")                            \
    X(ME_POSITION_NONE, "none", "none")

typedef enum me_position_embedding {
    ME_POSITION_EMBEDDING_LIST(ME_CHOICE_CONSTANT)
} me_position_embedding;

extern const me_choice me_position_embedding_choices[];

/** Rotary embedding of multi-latent attention. */
#define ME_ROPE_TYPE_LIST(X)                                                   \
    X(ME_ROPE_TYPE_ROPE, "rope", "rope")                                       \
    X(ME_ROPE_TYPE_YARN, "yarn", "yarn")

typedef enum me_rope_type {
    ME_ROPE_TYPE_LIST(ME_CHOICE_CONSTANT)
} me_rope_type;

extern const me_choice me_rope_type_choices[];

#define ME_TOKEN_DISPATCHER_LIST(X)                                            \
    X(ME_DISPATCHER_ALL_GATHER, "allgather", "allgather")                      \
    X(ME_DISPATCHER_ALL_TO_ALL, "alltoall", "alltoall")                        \
    X(ME_DISPATCHER_FLEX, "flex", "flex")

typedef enum me_token_dispatcher {
    ME_TOKEN_DISPATCHER_LIST(ME_CHOICE_CONSTANT)
} me_token_dispatcher;

extern const me_choice me_token_dispatcher_choices[];

/** Each but the last two is a loss of that name. */
#define ME_LOAD_BALANCING_LIST(X)                                              \
    X(ME_LOAD_BALANCING_AUX_LOSS, "aux_loss", "aux_loss")                      \
    X(ME_LOAD_BALANCING_SEQ_AUX_LOSS, "seq_aux_loss", "seq_aux_loss")          \
    X(ME_LOAD_BALANCING_GLOBAL_AUX_LOSS, "global_aux_loss", "global_aux_loss") \
    X(ME_LOAD_BALANCING_SINKHORN, "sinkhorn", "sinkhorn")                      \
    X(ME_LOAD_BALANCING_NONE, "none", "none")

typedef enum me_load_balancing {
    ME_LOAD_BALANCING_LIST(ME_CHOICE_CONSTANT)
} me_load_balancing;

extern const me_choice me_load_balancing_choices[];

/** Whose kernels the flex dispatcher runs. */
#define ME_FLEX_BACKEND_LIST(X)                                                \
    X(ME_FLEX_DEEPEP, "deepep", "DeepEP")                                      \
    X(ME_FLEX_HYBRIDEP, "hybridep", "HybridEP")

typedef enum me_flex_backend {
    ME_FLEX_BACKEND_LIST(ME_CHOICE_CONSTANT)
} me_flex_backend;

extern const me_choice me_flex_backend_choices[];

/** What becomes of a router's logits. */
#define ME_SCORE_FUNCTION_LIST(X)                                              \
    X(ME_SCORE_SOFTMAX, "softmax", "softmax")                                  \
    X(ME_SCORE_SIGMOID, "sigmoid", "sigmoid")                                  \
    X(ME_SCORE_SQRT_SOFTPLUS, "sqrtsoftplus", "sqrtsoftplus")

typedef enum me_score_function {
    ME_SCORE_FUNCTION_LIST(ME_CHOICE_CONSTANT)
} me_score_function;

extern const me_choice me_score_function_choices[];

/** Which of an expert's tokens are left out where it gets too many. */
#define ME_DROP_POLICY_LIST(X)                                                 \
    X(ME_DROP_PROBS, "probs", "probs")                                         \
    X(ME_DROP_POSITION, "position", "position")

typedef enum me_drop_policy {
    ME_DROP_POLICY_LIST(ME_CHOICE_CONSTANT)
} me_drop_policy;

extern const me_choice me_drop_policy_choices[];

/** Type of a router's logits and weights. */
#define ME_ROUTER_DTYPE_LIST(X)                                                \
    X(ME_ROUTER_DTYPE_NONE, "none", "the model's")                             \
    X(ME_ROUTER_DTYPE_FP32, "fp32", "fp32")                                    \
    X(ME_ROUTER_DTYPE_FP64, "fp64", "fp64")

typedef enum me_router_dtype {
    ME_ROUTER_DTYPE_LIST(ME_CHOICE_CONSTANT)
} me_router_dtype;

extern const me_choice me_router_dtype_choices[];

/** Megatron-LM's adam is AdamW, torch.optim.Adam where a plain PyTorch job says
 *  it. */
#define ME_OPTIMIZER_KIND_LIST(X)                                              \
    X(ME_OPTIMIZER_ADAM, "adam", "Adam")                                       \
    X(ME_OPTIMIZER_ADAMW, "adamw", "AdamW")                                    \
    X(ME_OPTIMIZER_SGD, "sgd", "SGD")                                          \
    X(ME_OPTIMIZER_MUON, "muon", "Muon")                                       \
    X(ME_OPTIMIZER_ADAPTIVE_MUON, "adaptive_muon", "adaptive Muon")            \
    X(ME_OPTIMIZER_LION, "lion", "Lion")                                       \
    X(ME_OPTIMIZER_SOAP, "soap", "SOAP")

typedef enum me_optimizer_kind {
    ME_OPTIMIZER_KIND_LIST(ME_CHOICE_CONSTANT)
} me_optimizer_kind;

extern const me_choice me_optimizer_kind_choices[];
/** What may step all that Muon does not. */
extern const me_choice me_scalar_optimizer_choices[];

/** Of a weight in parts Muon's ranks take their own, the whole, or all as one. */
#define ME_MUON_TP_MODE_LIST(X)                                                \
    X(ME_MUON_BLOCKWISE, "blockwise", "blockwise")                             \
    X(ME_MUON_DUPLICATED, "duplicated", "duplicated")                          \
    X(ME_MUON_DISTRIBUTED, "distributed", "distributed")

typedef enum me_muon_tp_mode {
    ME_MUON_TP_MODE_LIST(ME_CHOICE_CONSTANT)
} me_muon_tp_mode;

extern const me_choice me_muon_tp_mode_choices[];

/** Of Muon's products: medium are bfloat16, and PyTorch knows no low. */
#define ME_MATMUL_PRECISION_LIST(X)                                            \
    X(ME_MATMUL_MEDIUM, "medium", "medium")                                    \
    X(ME_MATMUL_HIGH, "high", "high")                                          \
    X(ME_MATMUL_LOW, "low", "low")

typedef enum me_matmul_precision {
    ME_MATMUL_PRECISION_LIST(ME_CHOICE_CONSTANT)
} me_matmul_precision;

extern const me_choice me_matmul_precision_choices[];

#define ME_RECOMPUTE_LIST(X)                                                   \
    X(ME_RECOMPUTE_NONE, "none", "none")                                       \
    X(ME_RECOMPUTE_SELECTIVE, "selective", "selective")                        \
    X(ME_RECOMPUTE_FULL, "full", "full")

typedef enum me_recompute {
    ME_RECOMPUTE_LIST(ME_CHOICE_CONSTANT)
} me_recompute;

extern const me_choice me_recompute_choices[];

#define ME_RECOMPUTE_METHOD_LIST(X)                                            \
    X(ME_RECOMPUTE_UNIFORM, "uniform", "uniform")                              \
    X(ME_RECOMPUTE_BLOCK, "block", "block")

typedef enum me_recompute_method {
    ME_RECOMPUTE_METHOD_LIST(ME_CHOICE_CONSTANT)
} me_recompute_method;

extern const me_choice me_recompute_method_choices[];

/** Whose modules a transformer's layers are made of. */
#define ME_TRANSFORMER_IMPL_LIST(X)                                            \
    X(ME_TRANSFORMER_LOCAL, "local", "local")                                  \
    X(ME_TRANSFORMER_ENGINE, "transformer_engine", "Transformer Engine")

typedef enum me_transformer_impl {
    ME_TRANSFORMER_IMPL_LIST(ME_CHOICE_CONSTANT)
} me_transformer_impl;

extern const me_choice me_transformer_impl_choices[];

/** Transformer Engine's are cuDNN's kernel, products and a softmax, or those of
 *  flash-attn, version 2, 3 or 4. */
#define ME_CORE_ATTENTION_KIND_LIST(X)                                         \
    X(ME_CORE_ATTENTION_UNFUSED, "unfused", "unfused")                         \
    X(ME_CORE_ATTENTION_SDPA_FLASH, "sdpa_flash", "sdpa_flash")                \
    X(ME_CORE_ATTENTION_TE_FUSED, "te_fused", "te_fused")                      \
    X(ME_CORE_ATTENTION_TE_UNFUSED, "te_unfused", "te_unfused")                \
    X(ME_CORE_ATTENTION_TE_FLASH, "te_flash", "te_flash")                      \
    X(ME_CORE_ATTENTION_TE_FLASH_3, "te_flash_3", "te_flash_3")                \
    X(ME_CORE_ATTENTION_TE_FLASH_4, "te_flash_4", "te_flash_4")

typedef enum me_core_attention_kind {
    ME_CORE_ATTENTION_KIND_LIST(ME_CHOICE_CONSTANT)
} me_core_attention_kind;

extern const me_choice me_core_attention_kind_choices[];

/** Which versions of flash-attn can be imported: packages of their own. */
#define ME_FLASH_ATTN_LIST(X)                                                  \
    X(ME_FLASH_ATTN_NONE, "none", "none")                                      \
    X(ME_FLASH_ATTN_2, "2", "2")                                               \
    X(ME_FLASH_ATTN_3, "3", "3")                                               \
    X(ME_FLASH_ATTN_2_AND_3, "2+3", "2+3")                                     \
    X(ME_FLASH_ATTN_4, "4", "4")                                               \
    X(ME_FLASH_ATTN_2_AND_4, "2+4", "2+4")                                     \
    X(ME_FLASH_ATTN_2_TO_4, "2+3+4", "2+3+4")

typedef enum me_flash_attn_version {
    ME_FLASH_ATTN_LIST(ME_CHOICE_CONSTANT)
} me_flash_attn_version;

extern const me_choice me_flash_attn_choices[];

/** `--attention-backend`: what Transformer Engine may choose from. */
#define ME_ATTENTION_BACKEND_LIST(X)                                           \
    X(ME_ATTENTION_BACKEND_AUTO, "auto", "auto")                               \
    X(ME_ATTENTION_BACKEND_FLASH, "flash", "flash")                            \
    X(ME_ATTENTION_BACKEND_FUSED, "fused", "fused")                            \
    X(ME_ATTENTION_BACKEND_UNFUSED, "unfused", "unfused")                      \
    X(ME_ATTENTION_BACKEND_LOCAL, "local", "local")

typedef enum me_attention_backend {
    ME_ATTENTION_BACKEND_LIST(ME_CHOICE_CONSTANT)
} me_attention_backend;

extern const me_choice me_attention_backend_choices[];

/** `--cross-entropy-fusion-impl`: whose cross entropy a fused one is. */
#define ME_CROSS_ENTROPY_IMPL_LIST(X)                                          \
    X(ME_CROSS_ENTROPY_NATIVE, "native", "native")                             \
    X(ME_CROSS_ENTROPY_TE, "te", "te")

typedef enum me_cross_entropy_impl {
    ME_CROSS_ENTROPY_IMPL_LIST(ME_CHOICE_CONSTANT)
} me_cross_entropy_impl;

extern const me_choice me_cross_entropy_impl_choices[];

/** What the softmax of attention has beside its scores: nothing, a 1, or a number
 *  of each head's. */
#define ME_SOFTMAX_TYPE_LIST(X)                                                \
    X(ME_SOFTMAX_VANILLA, "vanilla", "vanilla")                                \
    X(ME_SOFTMAX_OFF_BY_ONE, "off-by-one", "off-by-one")                       \
    X(ME_SOFTMAX_LEARNABLE, "learnable", "learnable")

typedef enum me_softmax_type {
    ME_SOFTMAX_TYPE_LIST(ME_CHOICE_CONSTANT)
} me_softmax_type;

extern const me_choice me_softmax_type_choices[];

/** Number formats of FP8: `--fp8-format`. Gradients of outputs are E5M2 under
 *  hybrid; both have a byte. */
#define ME_FP8_FORMAT_LIST(X)                                                  \
    X(ME_FP8_NONE, "none", "none")                                             \
    X(ME_FP8_E4M3, "e4m3", "e4m3")                                             \
    X(ME_FP8_HYBRID, "hybrid", "hybrid")

typedef enum me_fp8_format {
    ME_FP8_FORMAT_LIST(ME_CHOICE_CONSTANT)
} me_fp8_format;

extern const me_choice me_fp8_format_choices[];

/** Whose CUDA graphs a job's layers are captured as, or all of an iteration. */
#define ME_CUDA_GRAPH_LIST(X)                                                  \
    X(ME_CUDA_GRAPH_NONE, "none", "none")                                      \
    X(ME_CUDA_GRAPH_LOCAL, "local", "Megatron-LM's of layers")                 \
    X(ME_CUDA_GRAPH_TE, "transformer_engine",                                  \
      "Transformer Engine's of layers")                                        \
    X(ME_CUDA_GRAPH_FULL, "full_iteration", "one of forward and backward")

typedef enum me_cuda_graph {
    ME_CUDA_GRAPH_LIST(ME_CHOICE_CONSTANT)
} me_cuda_graph;

extern const me_choice me_cuda_graph_choices[];

/** How FP8 is scaled: `--fp8-recipe`. One scale a tensor of earlier steps'
 *  largest values, or of its own; one a block of 128, or of 32. */
#define ME_FP8_RECIPE_LIST(X)                                                  \
    X(ME_FP8_DELAYED, "delayed", "delayed")                                    \
    X(ME_FP8_TENSORWISE, "tensorwise", "tensorwise")                           \
    X(ME_FP8_BLOCKWISE, "blockwise", "blockwise")                              \
    X(ME_FP8_MXFP8, "mxfp8", "mxfp8")                                          \
    X(ME_FP8_CUSTOM, "custom", "custom")

typedef enum me_fp8_recipe {
    ME_FP8_RECIPE_LIST(ME_CHOICE_CONSTANT)
} me_fp8_recipe;

extern const me_choice me_fp8_recipe_choices[];

/** How Transformer Engine's user buffers overlap a product with communication over
 *  the tensor ranks: all of it beside the product, or in pieces, whose results
 *  are summed out of everybody's buffer, or go round and are kept until then. */
#define ME_OVERLAP_METHOD_LIST(X)                                              \
    X(ME_OVERLAP_BULK, "bulk", "bulk")                                         \
    X(ME_OVERLAP_PIPELINE, "pipeline", "pipeline")                             \
    X(ME_OVERLAP_RING_EXCHANGE, "ring_exchange", "ring exchange")

typedef enum me_overlap_method {
    ME_OVERLAP_METHOD_LIST(ME_CHOICE_CONSTANT)
} me_overlap_method;

extern const me_choice me_overlap_method_choices[];

/** Through whom ranks tell each other of their user buffers. */
#define ME_BOOTSTRAP_LIST(X)                                                   \
    X(ME_BOOTSTRAP_NCCL, "nccl", "NCCL")                                       \
    X(ME_BOOTSTRAP_MPI, "mpi", "MPI")                                          \
    X(ME_BOOTSTRAP_GLOO, "gloo", "Gloo")

typedef enum me_bootstrap {
    ME_BOOTSTRAP_LIST(ME_CHOICE_CONSTANT)
} me_bootstrap;

extern const me_choice me_bootstrap_choices[];

/** How context parallelism brings queries and keys together: keys and values go
 * round, are gathered, heads are dealt out, or heads are within nodes and the
 * rest goes round. */
#define ME_CP_COMM_TYPE_LIST(X)                                                \
    X(ME_CP_COMM_P2P, "p2p", "p2p")                                            \
    X(ME_CP_COMM_ALL_GATHER, "all_gather", "all_gather")                       \
    X(ME_CP_COMM_A2A, "a2a", "a2a")                                            \
    X(ME_CP_COMM_A2A_P2P, "a2a+p2p", "a2a+p2p")

typedef enum me_cp_comm_type {
    ME_CP_COMM_TYPE_LIST(ME_CHOICE_CONSTANT)
} me_cp_comm_type;

extern const me_choice me_cp_comm_type_choices[];

/** What data-parallel ranks own parts of under Megatron-FSDP. */
#define ME_SHARDING_STRATEGY_LIST(X)                                           \
    X(ME_SHARDING_NO_SHARD, "no_shard", "nothing")                             \
    X(ME_SHARDING_OPTIM, "optim", "optimizer")                                 \
    X(ME_SHARDING_OPTIM_GRADS, "optim_grads", "optimizer and gradients")       \
    X(ME_SHARDING_OPTIM_GRADS_PARAMS, "optim_grads_params",                    \
      "optimizer, gradients and parameters")

typedef enum me_sharding_strategy {
    ME_SHARDING_STRATEGY_LIST(ME_CHOICE_CONSTANT)
} me_sharding_strategy;

extern const me_choice me_sharding_strategy_choices[];
extern const me_choice me_outer_sharding_choices[]; /**< the first two */

/** How plain PyTorch spreads a model over the ranks of a batch. */
#define ME_DATA_PARALLEL_LIST(X)                                               \
    X(ME_DATA_PARALLEL_NONE, "none", "none")                                   \
    X(ME_DATA_PARALLEL_DDP, "ddp", "DistributedDataParallel")                  \
    X(ME_DATA_PARALLEL_FULLY_SHARD, "fully_shard", "fully_shard")

typedef enum me_data_parallel {
    ME_DATA_PARALLEL_LIST(ME_CHOICE_CONSTANT)
} me_data_parallel;

extern const me_choice me_data_parallel_choices[];

/** The kernel of scaled_dot_product_attention for 16-bit heads. */
#define ME_SDPA_BACKEND_LIST(X)                                                \
    X(ME_SDPA_CUDNN, "cudnn", "cudnn")                                         \
    X(ME_SDPA_FLASH, "flash", "flash")

typedef enum me_sdpa_backend {
    ME_SDPA_BACKEND_LIST(ME_CHOICE_CONSTANT)
} me_sdpa_backend;

extern const me_choice me_sdpa_backend_choices[];

/** What a plain PyTorch job's loss is given besides the model's output: of a
 *  pipeline a tensor of the output's shape and type; int64 of the input's shape;
 *  int64, one a sample. */
#define ME_TORCH_TARGET_LIST(X)                                                \
    X(ME_TORCH_TARGET_OUTPUT, "output", "output")                              \
    X(ME_TORCH_TARGET_LABELS, "labels", "labels")                              \
    X(ME_TORCH_TARGET_CLASSES, "classes", "classes")

typedef enum me_torch_target {
    ME_TORCH_TARGET_LIST(ME_CHOICE_CONSTANT)
} me_torch_target;

extern const me_choice me_torch_target_choices[];

/** How ranks are put on nodes: a node is filled before the next one, or one rank a
 *  node in turn. */
#define ME_RANK_PLACEMENT_LIST(X)                                              \
    X(ME_RANKS_BLOCK, "block", "block")                                        \
    X(ME_RANKS_CYCLIC, "cyclic", "cyclic")

typedef enum me_rank_placement {
    ME_RANK_PLACEMENT_LIST(ME_CHOICE_CONSTANT)
} me_rank_placement;

extern const me_choice me_rank_placement_choices[];

/** Who makes a micro-batch's data, for predicted times. */
#define ME_LOADER_LIST(X)                                                      \
    X(ME_LOADER_NONE, "none", "none")                                          \
    X(ME_LOADER_MOCK_GPT, "mock_gpt", "mock_gpt")

typedef enum me_loader {
    ME_LOADER_LIST(ME_CHOICE_CONSTANT)
} me_loader;

extern const me_choice me_loader_choices[];

/** @name Of dtypes, those that an option may have; -1 is "none", of which the
 *  option's sentence says what it is
 *  @{ */
extern const me_choice me_params_dtype_choices[];
extern const me_choice me_input_dtype_choices[];
extern const me_choice me_policy_dtype_choices[];
extern const me_choice me_fsdp_dtype_choices[]; /**< -1: auto */
extern const me_choice me_autocast_dtype_choices[];
extern const me_choice me_state_dtype_choices[]; /**< Megatron-LM's words */
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_MODEL_CHOICES_H */
