/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

static bool has_experts(const me_config *config)
{
    return config->moe.num_experts > 0;
}

/** Where it is not given, that of the dense layers is derived. */
static bool has_expert_width(const me_config *config)
{
    return has_experts(config) ||
           config->moe.ffn_hidden_size == config->model.ffn_hidden_size;
}

static bool has_windows(const me_config *config)
{
    return config->model.window_attention;
}

static bool has_latent_attention(const me_config *config)
{
    return config->model.multi_latent_attention;
}

static bool has_mtp(const me_config *config)
{
    return config->model.mtp_num_layers > 0;
}

static bool has_rotary(const me_config *config)
{
    return me_model_is_rotary(&config->model);
}

static bool has_norms_of_queries(const me_config *config)
{
    return config->model.qk_layernorm;
}

static bool has_unfused_attention(const me_config *config)
{
    return config->impl.core_attention == ME_CORE_ATTENTION_UNFUSED;
}

static bool has_context(const me_config *config)
{
    return config->parallel.context > 1;
}

static bool has_pipeline(const me_config *config)
{
    return config->parallel.pipeline > 1;
}

static bool has_fsdp2(const me_config *config)
{
    return config->parallel.torch_fsdp2;
}

static bool has_megatron_fsdp(const me_config *config)
{
    return config->parallel.megatron_fsdp;
}

static bool has_deferral(const me_config *config)
{
    return config->train.defer_embedding_wgrad_compute;
}

static bool has_distributed_optimizer(const me_config *config)
{
    return config->optimizer.distributed;
}

/** Else a buffer is one bucket. */
static bool has_overlapped_reduction(const me_config *config)
{
    return config->optimizer.overlap_grad_reduce;
}

static bool has_mup(const me_config *config)
{
    return config->model.use_mup;
}

static bool has_decoupled_rate(const me_config *config)
{
    return config->optimizer.decoupled_lr;
}

/** Where it is not, as many as stages are derived. */
static bool has_groups(const me_config *config)
{
    const me_parallel_config *p = &config->parallel;
    return p->virtual_pipeline > 1 || p->microbatch_group_size == p->pipeline;
}

static bool has_sgd(const me_config *config)
{
    return config->optimizer.kind == ME_OPTIMIZER_SGD;
}

static bool has_muon(const me_config *config)
{
    return me_is_muon(config->optimizer.kind);
}

static bool has_precision_awareness(const me_config *config)
{
    return config->optimizer.precision_aware;
}

static bool has_offload(const me_config *config)
{
    return config->optimizer.cpu_offload;
}

static bool has_full_recompute(const me_config *config)
{
    return config->recompute.granularity == ME_RECOMPUTE_FULL;
}

static bool has_selective_recompute(const me_config *config)
{
    return config->recompute.granularity == ME_RECOMPUTE_SELECTIVE;
}

static bool has_fine_grained_offload(const me_config *config)
{
    return config->offload.fine_grained;
}

static bool has_transformer_engine(const me_config *config)
{
    return config->impl.importable == ME_IMPORTABLE_TE;
}

static bool has_fp8(const me_config *config)
{
    return config->fp8.format != ME_FP8_NONE;
}

static bool has_bf16_ends(const me_config *config)
{
    return config->fp8.first_last_layers_bf16;
}

/** Asked for; where only parts are named that are not modelled, a note says
 *  so. */
static bool has_graphs(const me_config *config)
{
    return config->train.cuda_graph_impl != ME_CUDA_GRAPH_NONE ||
           me_config_is_set(config, "train.cuda_graph_impl");
}

static bool has_several_nodes(const me_config *config)
{
    return config->parallel.world_size > config->device.gpus_per_node;
}

static bool has_tp_overlap(const me_config *config)
{
    return config->tp_overlap.is_on;
}

const me_option_need me_megatron_needs[] = {
    {"moe.ffn_hidden_size", has_expert_width, "moe.num_experts"},
    {"moe.", has_experts, "moe.num_experts"},
    {"model.window_attn_skip_freq", has_windows, "model.window_attention"},
    {"model.q_lora_rank", has_latent_attention, "model.multi_latent_attention"},
    {"model.kv_lora_rank", has_latent_attention,
     "model.multi_latent_attention"},
    {"model.qk_head_dim", has_latent_attention, "model.multi_latent_attention"},
    {"model.qk_pos_emb_head_dim", has_latent_attention,
     "model.multi_latent_attention"},
    {"model.v_head_dim", has_latent_attention, "model.multi_latent_attention"},
    {"model.rope_type", has_latent_attention, "model.multi_latent_attention"},
    {"model.mtp_use_repeated_layer", has_mtp, "model.mtp_num_layers"},
    {"model.rotary_percent", has_rotary,
     "model.position_embedding_type = rope"},
    {"model.attention_softmax_in_fp32", has_unfused_attention,
     "impl.core_attention = unfused"},
    {"model.query_key_layer_scaling", has_unfused_attention,
     "impl.core_attention = unfused"},
    {"parallel.cp_comm_type", has_context, "parallel.context over 1"},
    {"parallel.cp_comm_layers", has_context, "parallel.context over 1"},
    {"parallel.tp_comm_", has_tp_overlap, "parallel.tp_comm_overlap"},
    {"parallel.tp_pp_dp_mapping", has_pipeline, "parallel.pipeline over 1"},
    {"parallel.microbatch_group_size", has_groups,
     "parallel.virtual_pipeline over 1"},
    {"parallel.account_for_embedding_in_pipeline_split", has_pipeline,
     "parallel.pipeline over 1"},
    {"parallel.account_for_loss_in_pipeline_split", has_pipeline,
     "parallel.pipeline over 1"},
    {"parallel.torch_fsdp2_reshard_after_forward", has_fsdp2,
     "parallel.torch_fsdp2"},
    {"parallel.sharding_strategy", has_megatron_fsdp, "parallel.megatron_fsdp"},
    {"parallel.fsdp_", has_megatron_fsdp, "parallel.megatron_fsdp"},
    {"parallel.outer_sharding_strategy", has_megatron_fsdp,
     "parallel.megatron_fsdp"},
    {"parallel.suggested_communication_unit_size", has_megatron_fsdp,
     "parallel.megatron_fsdp"},
    {"train.wgrad_deferral_limit", has_deferral,
     "train.defer_embedding_wgrad_compute"},
    {"optimizer.ddp_pad_buckets_for_high_nccl_busbw", has_distributed_optimizer,
     "optimizer.distributed"},
    {"model.mup_", has_mup, "model.use_mup"},
    {"optimizer.ddp_reduce_scatter_with_fp32_accumulation",
     has_distributed_optimizer, "optimizer.distributed"},
    {"optimizer.saves_fully_reshardable", has_distributed_optimizer,
     "optimizer.distributed"},
    {"optimizer.ddp_bucket_size", has_overlapped_reduction,
     "optimizer.overlap_grad_reduce"},
    {"optimizer.ddp_num_buckets", has_overlapped_reduction,
     "optimizer.overlap_grad_reduce"},
    {"optimizer.decoupled_min_lr", has_decoupled_rate,
     "optimizer.decoupled_lr"},
    {"optimizer.sgd_momentum", has_sgd, "optimizer.kind = sgd"},
    {"optimizer.muon_", has_muon,
     "optimizer.kind = muon or optimizer.kind = adaptive_muon"},
    {"optimizer.apply_wd_to_qk_layernorm", has_norms_of_queries,
     "model.qk_layernorm"},
    {"optimizer.main_grads_dtype", has_precision_awareness,
     "optimizer.precision_aware"},
    {"optimizer.main_params_dtype", has_precision_awareness,
     "optimizer.precision_aware"},
    {"optimizer.exp_avg_dtype", has_precision_awareness,
     "optimizer.precision_aware"},
    {"optimizer.exp_avg_sq_dtype", has_precision_awareness,
     "optimizer.precision_aware"},
    {"optimizer.offload_fraction", has_offload, "optimizer.cpu_offload"},
    {"optimizer.overlap_cpu_optimizer_d2h_h2d", has_offload,
     "optimizer.cpu_offload"},
    {"optimizer.pin_cpu_grads", has_offload, "optimizer.cpu_offload"},
    {"recompute.method", has_full_recompute, "recompute.granularity = full"},
    {"recompute.num_layers", has_full_recompute,
     "recompute.granularity = full"},
    {"recompute.distribute_saved_activations", has_full_recompute,
     "recompute.granularity = full"},
    {"recompute.core_attn", has_selective_recompute,
     "recompute.granularity = selective"},
    {"recompute.layernorm", has_selective_recompute,
     "recompute.granularity = selective"},
    {"offload.attn_norm", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.qkv_linear", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.core_attn", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.attn_proj", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.mlp_norm", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.expert_fc1", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.moe_act", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.min_tensor_size", has_fine_grained_offload,
     "offload.fine_grained"},
    {"offload.delta_bytes", has_fine_grained_offload, "offload.fine_grained"},
    {"offload.fraction", has_fine_grained_offload, "offload.fine_grained"},
    {"recompute.mlp", has_selective_recompute,
     "recompute.granularity = selective"},
    {"train.fp8_", has_fp8, "train.fp8"},
    {"train.first_last_layers_bf16", has_fp8, "train.fp8"},
    {"train.num_layers_at_", has_bf16_ends, "train.first_last_layers_bf16"},
    {"train.cuda_graph_modules", has_graphs, "train.cuda_graph_impl"},
    {"train.cuda_graph_warmup_steps", has_graphs, "train.cuda_graph_impl"},
    {"impl.flash_attn", has_transformer_engine,
     "impl.importable = transformer_engine"},
    {"impl.te_version", has_transformer_engine,
     "impl.importable = transformer_engine"},
    {"machine.placement", has_several_nodes, "several nodes"},
    {.option = NULL},
};
