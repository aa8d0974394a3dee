/**
 * @file
 * A job as the user describes it, with every derived value filled in: what the
 * model is, how it is spread and how it is trained. Every stage reads it from
 * here; `config` makes it, checks it, and nobody changes it afterwards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_JOB_H
#define MEMEST_MODEL_JOB_H

#include "model/choices.h"
#include "model/dtype.h"
#include "model/effect.h"
#include "model/impl_choices.h"
#include "model/layer.h"
#include "model/optimizer_config.h"
#include "model/torch_options.h"

#include <stdbool.h>
#include <stdint.h>

/** What is computed: sizes of the whole model, before any splitting. */
typedef struct me_model_config {
    int32_t num_layers;
    uint64_t hidden_size;
    uint64_t ffn_hidden_size; /**< width of the MLP; gated: of each half */
    uint64_t num_attention_heads;
    uint64_t num_query_groups; /**< key/value heads */
    uint64_t kv_channels;      /**< size of one head */
    uint64_t seq_length;
    uint64_t rank_seq_length; /**< derived: of those that share a sequence */
    uint64_t max_position_embeddings;
    uint64_t vocab_size; /**< as given, before padding */
    uint64_t make_vocab_size_divisible_by;
    uint64_t padded_vocab_size; /**< derived, unless given */
    me_normalization normalization;
    me_norm_placement norm_placement; /**< of a sub-layer */
    me_activation activation;
    bool add_bias_linear;
    bool add_qkv_bias;
    bool attention_output_gate; /**< a sigmoid of a part of the projection */
    bool qk_layernorm;
    bool qk_layernorm_across_heads; /**< of all at once, not of each */
    bool qk_l2_norm;                /**< in its place, without weights */
    me_position_embedding position_embedding;
    bool rotary_interleaved; /**< a pair that turns is two neighbours */
    bool use_rope_scaling;   /**< of frequencies, when they are made */
    double rotary_percent;   /**< share of a head that rotates, 0 to 1 */
    uint64_t rotary_size;    /**< derived: elements of a head that turn, as
                               Megatron-LM's tables have them: in pairs, so an
                               odd share is rounded up */
    bool multi_latent_attention;
    bool mla_down_proj_fusion;    /**< both latents by one projection */
    uint64_t q_lora_rank;         /**< query latent; 0: none */
    uint64_t kv_lora_rank;        /**< latent of keys and values */
    uint64_t qk_head_dim;         /**< of a head, without position */
    uint64_t qk_pos_emb_head_dim; /**< of a head, that rotate */
    uint64_t v_head_dim;
    uint64_t query_head_size; /**< derived: columns of a query's head */
    me_rope_type rope_type;   /**< of multi-latent attention */
    int32_t mtp_num_layers;   /**< prediction depths; 0: none */
    bool mtp_use_repeated_layer;
    bool untie_embeddings_and_output_weights;
    double attention_dropout;
    double hidden_dropout;
    bool attention_softmax_in_fp32;
    bool query_key_layer_scaling; /**< scores are divided by a layer's number,
                                       and multiplied before their softmax */
    me_softmax_type softmax_type;
    double activation_clamp_value; /**< of gated units' halves; 0: none */
    uint64_t yarn_positions;       /**< of yarn's tables */
    bool window_attention;         /**< of some layers or all */
    int32_t window_keys; /**< that a query sees, itself too; 0: not known, or
                              all before it */
    char window_attn_skip_freq[256]; /**< of which, see parallel/moe_layers.h;
                                          "": all */
    bool qk_clip;                    /**< queries and keys are clipped */
    bool log_max_attention_logit;    /**< each head's largest score is kept */
    char no_rope_freq[256];          /**< layers without rotary embedding, see
                                 parallel/moe_layers.h; "": none */
    bool fp32_residual_connection;
    bool use_mup;                  /**< maximal update parametrisation */
    uint64_t mup_base_hidden_size; /**< 0: as hidden_size */
    double mup_embedding_mult;     /**< of what the embedding makes */
    double mup_output_mult;        /**< of logits; 1: base over hidden_size */
} me_model_config;

/** Does it have one of the rotary position embeddings? */
static inline bool me_model_is_rotary(const me_model_config *m)
{
    return m->position_embedding == ME_POSITION_ROPE ||
           m->position_embedding == ME_POSITION_YARN;
}

/** Losses that a router may make, each with a vector in the log; those of
 *  me_load_balancing first, in its order. */
enum {
    ME_ROUTER_Z_LOSS = ME_LOAD_BALANCING_GLOBAL_AUX_LOSS + 1,
    ME_ROUTER_LOSSES
};

/** The mixture of experts of the model. */
typedef struct me_moe_options {
    uint64_t num_experts;     /**< 0: none */
    uint64_t router_topk;     /**< experts of a token */
    uint64_t ffn_hidden_size; /**< of an expert; default the MLP's */
    uint64_t shared_expert_intermediate_size; /**< 0: no shared expert */
    char layer_freq[256];                     /**< see parallel/moe_layers.h */
    me_token_dispatcher token_dispatcher;
    bool router_pre_softmax;
    char load_balancing[80];  /**< words of me_load_balancing */
    double aux_loss_coeff;    /**< 0: no such loss */
    char aux_loss_coeffs[80]; /**< of several losses, a number a word */
    bool is_sinkhorn;         /**< derived */
    int32_t sinkhorn_rounds;
    bool has_loss[ME_ROUTER_LOSSES];    /**< derived: the router makes it */
    bool tracks_loss[ME_ROUTER_LOSSES]; /**< derived: it is logged, be there
                                             one or not */
    double imbalance;                   /**< see parallel/routing.h */
    char tokens[1024]; /**< file of measured counts; "": none */
    me_score_function router_score_function;
    me_router_dtype router_dtype;
    uint64_t router_num_groups; /**< 0: experts are in no groups */
    uint64_t router_group_topk; /**< of them that a token goes to; 0: all */
    double router_topk_scaling_factor; /**< of weights; 0: none */
    bool router_enable_expert_bias;
    bool router_fusion;
    bool router_force_load_balancing; /**< random logits */
    double router_force_biased;       /**< noise of logits; 0: none */
    double z_loss_coeff;              /**< -1: no such loss */
    double input_jitter_eps;          /**< -1: none */
    bool has_input_jitter;            /**< derived */
    double capacity_factor;           /**< of each expert; -1: no limit */
    bool has_capacity;                /**< derived */
    bool pad_to_capacity;
    me_drop_policy drop_policy;
    bool per_layer_logging;
    bool router_padding_for_quantization; /**< by other tokens */
    me_flex_backend flex_backend;         /**< of the flex dispatcher */
    char routing[80]; /**< balanced, skewed:x or measured; "": as is given */
    uint64_t routing_seed; /**< of a skewed one */
    bool is_skewed;        /**< derived */
    double skew;           /**< derived: x */
    bool grouped_gemm;     /**< one function for a rank's experts, where the
                            implementation has it */
    uint64_t latent_size;  /**< width that experts work on; 0: the model's */
    uint64_t
        glu_interleave_size;    /**< columns of a gate that stand beside as many
                                     of what it gates, in grouped experts; 0: all */
    bool apply_probs_on_input;  /**< weights before the experts, not within */
    bool shared_expert_gate;    /**< their output times a score of the input */
    bool shared_expert_overlap; /**< beside the dispatcher's communication */
    bool permute_fusion;        /**< Transformer Engine's kernels sort tokens */
    bool overlap_expert_comm;   /**< two micro-batches in turns */
    bool delay_wgrad_compute;   /**< weight gradients beside exchanges */
    bool overlap_early_attention; /**< attention's backward before the other's
                                       experts */
} me_moe_options;

/** How it is spread over ranks. */
typedef struct me_parallel_config {
    int32_t world_size;
    int32_t tensor;
    int32_t pipeline;
    int32_t context;
    me_cp_comm_type cp_comm_type;
    char cp_comm_layers[1024]; /**< a word for each layer; "": that of all */
    int32_t context_heads;     /**< of a2a+p2p: ranks that deal out heads among
                                themselves; 0: not given */
    int32_t expert;
    int32_t expert_tensor;    /**< of each expert; default `tensor` */
    int32_t data;             /**< derived: world / (tp pp cp) */
    bool sequence;            /**< Megatron's sequence parallelism */
    int32_t virtual_pipeline; /**< chunks of a rank, 1: none */
    int32_t num_layers_per_virtual_pipeline_stage; /**< 0: not given */
    int32_t microbatch_group_size; /**< of interleaving; default pipeline */
    bool tp_pp_dp_mapping;         /**< ranks ordered tp-cp-ep-pp-dp */
    bool overlap_p2p_comm;         /**< interleaving: default true */
    bool overlap_p2p_comm_warmup_flush; /**< its first and last steps too */
    int32_t decoder_first_pipeline_num_layers; /**< 0: not given */
    int32_t decoder_last_pipeline_num_layers;  /**< 0: not given */
    bool account_for_embedding_in_pipeline_split;
    bool account_for_loss_in_pipeline_split;
    char pipeline_layout[1024]; /**< see parallel/layout.h; "": not given */
    bool torch_fsdp2;           /**< --use-torch-fsdp2, in place of DDP */
    bool torch_fsdp2_reshard_after_forward;
    bool megatron_fsdp; /**< --use-megatron-fsdp, in place of DDP */
    me_sharding_strategy sharding_strategy;       /**< its own */
    me_sharding_strategy outer_sharding_strategy; /**< of several instances:
                                                       no_shard or optim */
    int fsdp_main_params_dtype; /**< me_dtype; -1: the parameters' own are
                                     stepped */
    int fsdp_main_grads_dtype;  /**< -1: the parameters' */
    int fsdp_grad_comm_dtype;   /**< -1: the main gradients' */
    uint64_t suggested_communication_unit_size; /**< elements; 0: not given */
    bool init_model_with_meta_device;
    bool fsdp_double_buffer;
    bool fsdp_db_use_persist_buf_on_alloc_fail; /**< buckets without double
                                                     buffers stay */
    bool fsdp_keep_fp8_columns; /**< --keep-fp8-transpose-cache */
} me_parallel_config;

/** Are experts' parameters reduced and stepped in groups of their own?
 *  Megatron-LM: use_expert_pgs in core/tensor_parallel/layers.py. */
static inline bool me_has_expert_groups(const me_parallel_config *parallel)
{
    return parallel->expert > 1 || parallel->expert_tensor != parallel->tensor;
}

/** Communication over the tensor ranks beside products of Transformer Engine's
 *  linear layers, through user buffers (`--tp-comm-overlap`). */
typedef struct me_tp_overlap_config {
    bool is_on;
    bool gathers;                  /**< pieces, of inputs and of gradients */
    bool scatters;                 /**< pieces of row-parallel outputs */
    bool scatters_input_gradients; /**< pieces; in place of the bulk ones */
    bool bulk_dgrad;               /**< the input gathered beside dgrad */
    bool bulk_wgrad;               /**< dgrad scattered beside wgrad */
    me_bootstrap bootstrap;
    bool has_multicast;          /**< cards reach the buffers of others so */
    me_overlap_method qkv_dgrad; /**< of `--tp-comm-overlap-cfg` */
    me_overlap_method fc1_dgrad;
    me_overlap_method proj_fprop; /**< pipeline or ring_exchange */
    me_overlap_method fc2_fprop;
} me_tp_overlap_config;

/** In which order the pipeline runs. */
typedef struct me_schedule_config {
    char name[64];   /**< see parallel/schedule.h; "": what the degrees imply */
    char file[1024]; /**< an order of the user's own; "": none */
    bool is_own;     /**< derived: one of Megatron-LM's functions runs it */
    int32_t
        memory_limit; /**< zb_auto, v_auto: chunk micro-batches; 0: as 1f1b */
} me_schedule_config;

/** How it is trained. */
typedef struct me_train_config {
    uint64_t micro_batch_size;
    uint64_t global_batch_size;
    uint64_t eval_micro_batch_size;  /**< 0: as in training */
    uint64_t eval_global_batch_size; /**< 0: as in training */
    uint64_t eval_iters;  /**< of one evaluation; 0: the job has none */
    bool full_validation; /**< as many as the data has */
    bool evaluates;       /**< derived: at the latest when the job ends */
    bool decrease_batch_size_if_needed;
    int32_t num_microbatches; /**< derived */
    int32_t iterations;       /**< that are simulated */
    me_dtype params_dtype;    /**< float32, bfloat16 or float16 */
    me_dtype grad_dtype;      /**< derived: of the main gradients */
    bool grad_reduce_in_bf16;
    bool accumulate_allreduce_grads_in_fp32;
    double loss_scale;         /**< fixed; 0: float16's dynamic one, or none */
    bool has_loss_scale;       /**< derived: float16's, or a fixed one */
    double initial_loss_scale; /**< of a dynamic one */
    bool has_dynamic_loss_scale; /**< derived */
    bool first_steps_overflow; /**< derived: of a dynamic one that begins above
                                      what float16 holds */
    bool create_attention_mask_in_dataloader;
    bool torch_compile; /**< what Megatron-LM compiles is compiled */
    bool log_params_norm;
    int32_t timing_log_level; /**< from 1 on parts of a step are timed */
    bool barrier_with_level_1_timing;   /**< each behind a barrier */
    int32_t empty_unused_memory_level;  /**< 1: the allocator's cache is emptied
                                            before the optimizer's step; 2: and
                                            after it */
    bool compile_cache_is_warm;         /**< and was timed by an earlier run */
    me_checkpoint_load load_checkpoint; /**< before the first iteration */
    me_checkpoint_load loads; /**< derived: that, where it is modelled */
    bool bias_gelu_fusion;    /**< torch.compile'd; gelu only */
    bool bias_swiglu_fusion;
    bool bias_activation_fusion; /**< derived: that of the model's activation */
    bool bias_dropout_fusion;
    bool apply_rope_fusion;
    bool masked_softmax_fusion;
    bool gradient_accumulation_fusion;
    bool cross_entropy_loss_fusion;
    me_cross_entropy_impl cross_entropy_fusion_impl;
    bool defer_embedding_wgrad_compute; /**< the output layer's, to the flush */
    uint64_t wgrad_deferral_limit;      /**< of as many micro-batches; 0: all */
    bool calculate_per_token_loss; /**< the sum over tokens, divided at last */
    bool te_op_fuser;              /**< dense MLPs by te.ops, in one function */
    bool grouped_dense_mlp;        /**< and as grouped products of one expert */
    bool use_te_activation_func;   /**< activations are modules of te.ops */
    bool deterministic_mode;       /**< torch.use_deterministic_algorithms() */
    bool check_for_nan_in_loss_and_grad;
    bool check_for_large_grads; /**< by their norms, bucket by bucket */
    me_cuda_graph cuda_graph_impl;
    int32_t cuda_graph_warmup_steps; /**< before a capture */
    char cuda_graph_modules[64];     /**< of a layer; "": all */
    /** Derived, what of a layer is captured, by Megatron-LM itself all of it. @{ */
    bool cuda_graph_attention;
    bool cuda_graph_mlp;     /**< what comes after it in a dense layer */
    bool cuda_graph_experts; /**< and in one with experts */
    bool cuda_graph_router;  /**< of that the norm, shared experts and router */
    bool cuda_graph_preprocess;  /**< and what sorts tokens for their way */
    bool cuda_graph_late_counts; /**< the host learns counts after sorting */
    /** @} */
} me_train_config;

/** FP8 of Transformer Engine's linear layers; the rest stays in params_dtype. */
typedef struct me_fp8_config {
    me_fp8_format format; /**< ME_FP8_NONE: no FP8 */
    me_fp8_recipe recipe;
    int32_t amax_history_len; /**< steps whose largest values delayed keeps */
    bool param;               /**< weights are kept in FP8, and gathered so */
    bool first_last_layers_bf16;
    int32_t num_layers_at_start_in_bf16; /**< of first_last_layers_bf16 */
    int32_t num_layers_at_end_in_bf16;
} me_fp8_config;

typedef struct me_recompute_config {
    me_recompute granularity;
    me_recompute_method method; /**< of full */
    int32_t num_layers;         /**< of full */
    bool core_attn;             /**< selective: modules named */
    bool layernorm;
    bool mla_up_proj;
    bool mlp;
    bool moe;     /**< a whole layer of experts */
    bool moe_act; /**< activations of grouped experts */
    bool shared_experts;
    bool distribute_saved_activations;
} me_recompute_config;

/** Activations that wait for the backward in the host's memory. */
typedef struct me_offload_config {
    int32_t num_layers; /**< the first layers', cpu_offloading_num_layers */
    bool is_v1;         /**< derived: by Transformer Engine's older code path */
    bool fine_grained;  /**< what the modules below save */
    bool attn_norm;     /**< norms that are not part of a linear layer */
    bool qkv_linear;
    bool core_attn;
    bool attn_proj;
    bool mlp_norm;
    bool
        keeps_attn_norm; /**< derived: not offloaded though it is named, since a
                               CUDA graph ends beside it */
    bool keeps_mlp_norm;
    bool expert_fc1; /**< grouped experts */
    bool moe_act;
    uint64_t min_tensor_size; /**< elements; fine_grained offloads no less */
    uint64_t delta_bytes;     /**< each pipeline stage keeps so many more than
                                   the one before */
    double fraction;          /**< of the groups of a micro-batch */
} me_offload_config;

/** Which code runs a part. */
typedef struct me_impl_config {
    me_transformer_impl transformer;
    me_importable importable;
    char te_version[64]; /**< of Transformer Engine */
    me_attention_backend attention_backend;
    me_flash_attn_version flash_attn;
    me_core_attention_kind core_attention;
    me_core_attention_kind window_attention; /**< derived: of layers that look
                                                  at a window */
    me_norm_impl norm;
    me_optimizer_impl optimizer;
} me_impl_config;

typedef struct me_device_config {
    char name[256];              /**< of the card, such as "h200-141gb"; a
                                      file of one; or "auto" */
    uint64_t memory_bytes;       /**< of the card; 0: what the name says */
    uint64_t memory_limit_bytes; /**< what the allocator may hold; 0: card */
    char alloc_conf[256];        /**< as PYTORCH_CUDA_ALLOC_CONF */
    int32_t gpus_per_node;
    uint64_t host_memory_bytes; /**< what the job may have of a node's host; 0:
                                     nobody knows */
} me_device_config;

/** Where the job runs. */
typedef struct me_machine_config {
    char file[1024]; /**< a name of configs/machines, a file of one, or hwloc's
                         XML; "": links are the card's */
    me_rank_placement placement;
} me_machine_config;

/** What predicted times count beside the job itself. */
typedef struct me_time_config {
    me_loader loader;
} me_time_config;

/** A flag of a launch command, and why it is in the list it is in. */
typedef struct me_flag_note {
    const char *flag; /**< "--use-flash-attn" */
    const char *note; /**< one phrase, or NULL */
    me_effect effect; /**< of what is not modelled */
} me_flag_note;

typedef struct me_flag_list {
    me_flag_note *flags;
    int32_t count;
} me_flag_list;

/**
 * The whole job. Created by me_config_create() with defaults and filled by the
 * readers of files, launch commands and `--set`; me_config_finish() derives and
 * checks. Owned by whoever created it.
 */
typedef struct me_config {
    char name[64]; /**< of the job, for the report's head */
    me_framework framework;
    me_model_config model;
    me_moe_options moe;
    me_parallel_config parallel;
    me_tp_overlap_config tp_overlap;
    me_schedule_config pipeline;
    me_train_config train;
    me_fp8_config fp8;
    me_optimizer_config optimizer;
    me_recompute_config recompute;
    me_offload_config offload;
    me_impl_config impl;
    me_device_config device;
    me_machine_config machine;
    me_time_config time;
    me_torch_options torch;
    struct me_layers *layers;      /**< owned; the `module` group, or NULL */
    me_torch_job torch_job;        /**< derived */
    me_flag_list modelled;         /**< launch flags that the model uses */
    me_flag_list no_effect;        /**< that do not change memory */
    me_flag_list not_modelled;     /**< that may, and are not modelled */
    me_flag_list assumptions;      /**< `flag` empty, `note` one sentence */
    me_flag_list environment;      /**< launch's assignments: name, value */
    struct me_config_private *own; /**< strings, which options were set */
} me_config;

/** Is the distributed optimizer LayerWiseDistributedOptimizer, which deals out
 *  whole parameters? Local. */
static inline bool me_config_is_layer_wise(const me_config *config)
{
    return config->optimizer.distributed &&
           me_is_emerging_optimizer(config->optimizer.kind);
}

/** Does DistributedDataParallel have a buffer of parameters and scatter sums of
 *  gradients? Under any other distributed optimizer it does. Local. */
static inline bool me_config_scatters_gradients(const me_config *config)
{
    return config->optimizer.distributed && !me_config_is_layer_wise(config);
}

/** Before which iteration Transformer Engine captures layers as CUDA graphs; -1:
 *  never. What comes before is the same from the second one on, so that no more
 *  than a few are run. Local. */
static inline int32_t me_config_capture_iteration(const me_config *config)
{
    enum {
        MOST_BEFORE = 3
    };

    const int32_t steps = config->train.cuda_graph_warmup_steps;
    return config->train.cuda_graph_impl != ME_CUDA_GRAPH_TE ? -1
           : steps > MOST_BEFORE                             ? MOST_BEFORE
                                                             : steps;
}

/**
 * Iterations that are run where @p iterations are asked for: two with graphs that
 * are captured between iterations; with a dynamic
 * loss scale those all skip the optimizer, and as many follow in which it
 * steps, for the rest of the job's life. Local.
 */
static inline int32_t me_config_iterations(const me_config *config,
                                           int32_t iterations)
{
    const int32_t captured = me_config_capture_iteration(config) + 2;
    const int32_t n =
        config->train.first_steps_overflow ? 2 * iterations : iterations;
    return iterations > 1 && n < captured ? captured : n;
}

/** Samples of a forward of evaluation. Local. */
static inline uint64_t me_config_eval_micro_batch(const me_config *config)
{
    const me_train_config *t = &config->train;
    return t->eval_micro_batch_size != 0 ? t->eval_micro_batch_size
                                         : t->micro_batch_size;
}

/** Samples of an iteration of evaluation, of all ranks. Local. */
static inline uint64_t me_config_eval_global_batch(const me_config *config)
{
    const me_train_config *t = &config->train;
    return t->eval_global_batch_size != 0 ? t->eval_global_batch_size
                                          : t->global_batch_size;
}

/** Forwards of a rank in an iteration of evaluation; not before there are samples
 *  in a micro-batch. Local. */
static inline uint64_t me_config_eval_microbatches(const me_config *config)
{
    return me_config_eval_global_batch(config) /
           (me_config_eval_micro_batch(config) *
            (uint64_t)config->parallel.data);
}

#endif /* MEMEST_MODEL_JOB_H */
