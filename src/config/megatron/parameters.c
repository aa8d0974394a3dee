/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/parameters.h"

#include "base/alloc.h"
#include "base/size.h"
#include "config/megatron/megatron_rules.h"
#include "parallel/moe_layers.h"

static uint64_t product(uint64_t a, uint64_t b)
{
    return me_size_mul(a, b);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return me_size_add(a, b);
}

/** Weight, and bias where the kind has one. */
static uint64_t norm(const me_model_config *m, uint64_t size)
{
    return m->normalization == ME_NORMALIZATION_LAYER_NORM ? product(2, size)
                                                           : size;
}

static uint64_t linear(uint64_t inputs, uint64_t outputs, bool has_bias)
{
    return sum(product(inputs, outputs), has_bias ? outputs : 0);
}

/** Queries, keys and values out of their latents: kinds of norms and projections
 *  as multi_latent_attention.py has them. */
static uint64_t latent_attention(const me_model_config *m)
{
    const uint64_t h = m->hidden_size;
    const uint64_t a = m->num_attention_heads;
    const uint64_t q = product(a, m->query_head_size);
    const uint64_t kv = product(a, sum(m->qk_head_dim, m->v_head_dim));
    uint64_t n = m->q_lora_rank == 0 ? linear(h, q, false)
                                     : sum(linear(h, m->q_lora_rank, false),
                                           linear(m->q_lora_rank, q, false));
    n = sum(n, linear(h, sum(m->kv_lora_rank, m->qk_pos_emb_head_dim), false));
    n = sum(n, linear(m->kv_lora_rank, kv, false));
    if (m->qk_layernorm) {
        n = sum(n, norm(m, m->kv_lora_rank));
        n = sum(n, m->q_lora_rank == 0 ? 0 : norm(m, m->q_lora_rank));
    }
    return sum(n, linear(product(a, m->v_head_dim), h, m->add_bias_linear));
}

/** Of each head, or of all at once. */
static uint64_t query_key_norms(const me_model_config *m)
{
    const uint64_t d = m->kv_channels;
    return m->qk_layernorm_across_heads
               ? norm(m,
                      product(sum(m->num_attention_heads, m->num_query_groups),
                              d))
               : product(2, norm(m, d));
}

static uint64_t attention(const me_model_config *m)
{
    const uint64_t softmax_offset =
        m->softmax_type == ME_SOFTMAX_LEARNABLE ? m->num_attention_heads : 0;
    if (m->multi_latent_attention) {
        return sum(latent_attention(m), softmax_offset);
    }
    const uint64_t d = m->kv_channels;
    const uint64_t q = product(m->num_attention_heads, d);
    const uint64_t kv = product(product(2, m->num_query_groups), d);
    const uint64_t gate = m->attention_output_gate ? q : 0;
    uint64_t n = linear(m->hidden_size, sum(sum(q, gate), kv), m->add_qkv_bias);
    n = sum(n, linear(q, m->hidden_size, m->add_bias_linear));
    n = sum(n, !m->qk_layernorm || m->qk_l2_norm ? 0 : query_key_norms(m));
    return sum(n, softmax_offset);
}

/** @param width_in  of what it is given, and makes */
static uint64_t mlp_of(const me_model_config *m, uint64_t width_in,
                       uint64_t width)
{
    const uint64_t up =
        me_is_gated_activation(m->activation) ? product(2, width) : width;
    return sum(linear(width_in, up, m->add_bias_linear),
               linear(width, width_in, m->add_bias_linear));
}

static uint64_t mlp(const me_model_config *m, uint64_t width)
{
    return mlp_of(m, m->hidden_size, width);
}

/** Router, experts and those that all tokens go through, with their gate; the
 *  projections to and from the experts' own width. */
static uint64_t experts(const me_config *config)
{
    const me_model_config *m = &config->model;
    const me_moe_options *moe = &config->moe;
    const uint64_t h = m->hidden_size;
    const bool is_latent = moe->latent_size > 0;
    uint64_t n = linear(h, moe->num_experts, m->add_bias_linear);
    n = sum(
        n, product(moe->num_experts, mlp_of(m, is_latent ? moe->latent_size : h,
                                            moe->ffn_hidden_size)));
    if (is_latent) {
        n = sum(n, linear(h, moe->latent_size, m->add_bias_linear));
        n = sum(n, linear(moe->latent_size, h, m->add_bias_linear));
    }
    if (moe->shared_expert_intermediate_size == 0) {
        return n;
    }
    n = sum(n, moe->shared_expert_gate ? h : 0);
    return sum(n, mlp(m, moe->shared_expert_intermediate_size));
}

/** A layer but for its MLP or experts. */
static uint64_t layer(const me_model_config *m)
{
    const uint64_t norms = m->norm_placement == ME_NORMS_BOTH ? 4 : 2;
    return sum(attention(m), product(norms, norm(m, m->hidden_size)));
}

me_status me_moe_layers_count(const me_config *config, me_diag *diag,
                              uint64_t *count_out, bool *last_out)
{
    const int32_t n_layers = config->model.num_layers;
    *count_out = 0;
    *last_out = false;
    if (config->moe.num_experts == 0 || n_layers <= 0) {
        return ME_OK;
    }
    bool *is_moe = me_alloc((size_t)n_layers, sizeof *is_moe, "moe layers");
    if (is_moe == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a list of layers");
    }
    const me_status status =
        me_moe_layers_read(config->moe.layer_freq, n_layers, diag, is_moe);
    for (int32_t i = 0; status == ME_OK && i < n_layers; i++) {
        *count_out += is_moe[i] ? 1 : 0;
        *last_out = is_moe[i];
    }
    me_free(is_moe);
    return status;
}

/** Word embedding, learned positions, output layer and final norm. */
static uint64_t ends(const me_model_config *m)
{
    const uint64_t words = product(m->vocab_size, m->hidden_size);
    const uint64_t positions =
        m->position_embedding == ME_POSITION_LEARNED_ABSOLUTE
            ? product(m->max_position_embeddings, m->hidden_size)
            : 0;
    const uint64_t output = m->untie_embeddings_and_output_weights ? words : 0;
    return sum(sum(words, output), sum(positions, norm(m, m->hidden_size)));
}

/** Of each depth: its two norms and the projection of both; a layer, whose MLP or
 *  experts are of @p mixer parameters; a norm. */
static uint64_t prediction(const me_model_config *m, uint64_t mixer)
{
    const uint64_t h = m->hidden_size;
    const uint64_t depth =
        sum(linear(product(2, h), h, false), product(3, norm(m, h)));
    const uint64_t depths = m->mtp_use_repeated_layer && m->mtp_num_layers > 0
                                ? 1
                                : (uint64_t)m->mtp_num_layers;
    return product(depths, sum(depth, sum(layer(m), mixer)));
}

static me_status count(const me_config *config, me_diag *diag,
                       uint64_t *count_out)
{
    const me_model_config *m = &config->model;
    uint64_t n_moe = 0;
    bool is_last_moe = false;
    const me_status status =
        me_moe_layers_count(config, diag, &n_moe, &is_last_moe);
    const uint64_t n_layers = (uint64_t)m->num_layers;
    uint64_t n = sum(ends(m), product(n_layers, layer(m)));
    const uint64_t dense = mlp(m, m->ffn_hidden_size);
    const uint64_t sparse = n_moe == 0 ? 0 : experts(config);
    n = sum(n, product(n_layers - n_moe, dense));
    n = sum(n, product(n_moe, sparse));
    *count_out = sum(n, prediction(m, is_last_moe ? sparse : dense));
    return status;
}

me_status me_model_summarize(const me_config *config, me_diag *diag,
                             me_model_summary *summary_out)
{
    if (config->framework != ME_FRAMEWORK_MEGATRON) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "a model of plain PyTorch is a tree of modules");
    }
    me_config *own = me_config_clone(config);
    if (own == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a model");
    }
    uint64_t parameters = 0;
    me_status status = me_config_derive(own, 1, diag);
    if (status == ME_OK) {
        status = count(own, diag, &parameters);
    }
    if (status == ME_OK) {
        *summary_out = (me_model_summary){
            .parameters = parameters,
            .num_layers = own->model.num_layers,
            .hidden_size = own->model.hidden_size,
            .num_attention_heads = own->model.num_attention_heads,
            .num_query_groups = own->model.num_query_groups,
            .num_experts = own->moe.num_experts,
            .router_topk = own->moe.router_topk,
            .vocab_size = own->model.vocab_size,
        };
    }
    me_config_destroy(own);
    return status;
}
