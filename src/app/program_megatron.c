/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/program.h"
#include "base/alloc.h"

static bool fuses_activation(const me_config *c)
{
    return c->model.activation == ME_ACTIVATION_SWIGLU
               ? c->train.bias_swiglu_fusion
               : c->train.bias_gelu_fusion;
}

/** An overflow is expected then, so gradients are not checked for one. */
static bool is_scaled_dynamically(const me_config *c)
{
    return c->train.params_dtype == ME_DTYPE_FLOAT16 &&
           !(c->train.loss_scale > 0);
}

static me_moe_config moe_config(const me_plan *plan)
{
    const me_config *c = plan->config;
    return (me_moe_config){
        .num_experts = c->moe.num_experts,
        .router_topk = c->moe.router_topk,
        .ffn_hidden_size = c->moe.ffn_hidden_size,
        .shared_expert_intermediate_size =
            c->moe.shared_expert_intermediate_size,
        .token_dispatcher = c->moe.token_dispatcher,
        .router_pre_softmax = c->moe.router_pre_softmax,
        .has_aux_loss = c->moe.num_experts > 0 && c->moe.aux_loss_coeff > 0 &&
                        c->moe.load_balancing == ME_LOAD_BALANCING_AUX_LOSS,
        .n_losses = (uint64_t)c->model.num_layers,
        .is_moe_layer = plan->is_moe_layer,
        .routing = &plan->routing,
        .expert_parallel = c->parallel.expert,
        .expert_tensor_parallel = c->parallel.expert_tensor,
    };
}

static me_transformer_config transformer_config(const me_plan *plan)
{
    const me_config *c = plan->config;
    const me_model_config *m = &c->model;
    return (me_transformer_config){
        .micro_batch_size = c->train.micro_batch_size,
        .seq_length = m->seq_length,
        .hidden_size = m->hidden_size,
        .num_attention_heads = m->num_attention_heads,
        .num_query_groups = m->num_query_groups,
        .kv_channels = m->kv_channels,
        .ffn_hidden_size = m->ffn_hidden_size,
        .padded_vocab_size = m->padded_vocab_size,
        .max_position_embeddings = m->max_position_embeddings,
        .rotary_size = m->rotary_size,
        .multi_latent_attention = m->multi_latent_attention,
        .rope_type = m->rope_type,
        .q_lora_rank = m->q_lora_rank,
        .kv_lora_rank = m->kv_lora_rank,
        .qk_head_dim = m->qk_head_dim,
        .qk_pos_emb_head_dim = m->qk_pos_emb_head_dim,
        .v_head_dim = m->v_head_dim,
        .mtp_num_layers = m->mtp_num_layers,
        .mtp_use_repeated_layer = m->mtp_use_repeated_layer,
        .params_dtype = c->train.params_dtype,
        .normalization = m->normalization,
        .activation = m->activation,
        .position_embedding = m->position_embedding,
        .core_attention = c->impl.core_attention,
        .attention_dropout = m->attention_dropout,
        .hidden_dropout = m->hidden_dropout,
        .add_bias_linear = m->add_bias_linear,
        .add_qkv_bias = m->add_qkv_bias,
        .qk_layernorm = m->qk_layernorm,
        .attention_softmax_in_fp32 = m->attention_softmax_in_fp32,
        .bias_activation_fusion = fuses_activation(c),
        .bias_dropout_fusion = c->train.bias_dropout_fusion,
        .cross_entropy_loss_fusion = c->train.cross_entropy_loss_fusion,
        .untie_embeddings_and_output_weights =
            m->untie_embeddings_and_output_weights,
        .sequence_parallel = c->parallel.sequence,
        .tensor_parallel = c->parallel.tensor,
        .recompute = c->recompute.granularity,
        .recompute_method = c->recompute.method,
        .recompute_num_layers = c->recompute.num_layers,
        .recompute_core_attention = c->recompute.core_attn,
        .recompute_layernorm = c->recompute.layernorm,
        .recompute_mlp = c->recompute.mlp,
        .distribute_saved_activations =
            c->recompute.distribute_saved_activations,
        .moe = moe_config(plan),
    };
}

static me_status init(const me_plan *plan, int32_t rank, me_program *p)
{
    const me_config *c = plan->config;
    p->chunks =
        me_alloc((size_t)plan->n_chunks, sizeof *p->chunks, "program.chunks");
    if (p->chunks == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int32_t i = 0; i < plan->n_chunks; i++) {
        const me_stage s = me_plan_stage(plan, rank, i);
        p->chunks[i] = (me_gpt_spec){
            .first_layer = s.first_layer,
            .num_layers = s.n_layers,
            .pre_process = s.has_embedding,
            .post_process = s.has_head,
            .is_pipelined = c->parallel.pipeline > 1,
            .chunk = i,
        };
    }
    p->megatron = (me_megatron_config){
        .model = transformer_config(plan),
        .chunks = p->chunks,
        .n_chunks = plan->n_chunks,
        .pipeline = me_plan_pipeline(plan, rank),
        .order = plan->order,
        .create_attention_mask = c->train.create_attention_mask_in_dataloader,
        .check_for_nan = c->train.check_for_nan_in_loss_and_grad &&
                         !is_scaled_dynamically(c),
        .has_dynamic_loss_scale = is_scaled_dynamically(c),
        .grad_dtype = c->train.grad_dtype,
        .optimizer = c->optimizer.kind,
        .distributed_optimizer = c->optimizer.distributed,
        .torch_fsdp2 = c->parallel.torch_fsdp2,
        .fully_shard = {.reshard_after_forward =
                            c->parallel.torch_fsdp2_reshard_after_forward},
        .overlap_grad_reduce = c->optimizer.overlap_grad_reduce,
        .overlap_param_gather = c->optimizer.overlap_param_gather,
        .overlap_param_gather_with_step =
            c->optimizer.overlap_param_gather_with_optimizer_step,
        .align_grad_reduce = c->optimizer.align_grad_reduce,
        .overlap_p2p_comm = c->parallel.overlap_p2p_comm,
        .overlap_p2p_comm_warmup_flush =
            c->parallel.overlap_p2p_comm_warmup_flush,
        .ddp_num_buckets = c->optimizer.ddp_num_buckets,
        .ddp_bucket_size = c->optimizer.ddp_bucket_size,
        .pads_buckets = c->optimizer.ddp_pad_buckets_for_high_nccl_busbw,
        .clips_gradients = c->optimizer.clip_grad > 0,
        .decays_weights = c->optimizer.weight_decay > 0,
        .has_momentum = c->optimizer.sgd_momentum > 0,
        .runs_all_rounds = !me_routing_is_uniform(&plan->routing),
    };
    return ME_OK;
}

static void run(me_engine *e, me_program *p)
{
    p->megatron.iterations = p->iterations;
    p->megatron.runs_all_rounds =
        p->megatron.runs_all_rounds || p->runs_all_rounds;
    p->megatron.must_run_all = &p->must_run_all;
    p->megatron.unlike = p->unlike;
    (void)me_megatron_run(e, &p->megatron, &p->comm);
}

static const me_schedule *schedule(const me_plan *plan)
{
    const char *name = plan->config->parallel.pipeline == 1 ? "none"
                       : plan->n_chunks > 1                 ? "interleaved"
                                                            : "1f1b";
    return me_schedule_find(name);
}

const me_program_kind me_megatron_program = {
    .name = "megatron",
    .init = init,
    .run = run,
    .schedule = schedule,
};
