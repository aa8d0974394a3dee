/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "config/megatron/megatron_rules.h"
#include "parallel/moe_layers.h"

/* What MLATransformerConfig and validate_args() ask of multi-latent attention,
 * and what they and MultiTokenPredictionBlock ask of multi-token prediction. */

static me_status check_latent_heads(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (!m->multi_latent_attention ||
        m->num_query_groups == m->num_attention_heads) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.num_query_groups = %llu does not go with "
                   "model.multi_latent_attention = true: leave it out",
                   (unsigned long long)m->num_query_groups);
}

static me_status check_latent_recompute(const me_config *config, me_diag *diag)
{
    if (!config->recompute.mla_up_proj ||
        config->recompute.granularity != ME_RECOMPUTE_SELECTIVE ||
        config->model.multi_latent_attention) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "recompute.mla_up_proj = true needs "
                   "model.multi_latent_attention = true");
}

static me_status check_latent_rotary(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (m->multi_latent_attention && m->rotary_interleaved) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.rotary_interleaved = true does not go with "
                       "model.multi_latent_attention = true");
    }
    if (!m->multi_latent_attention || m->rope_type == ME_ROPE_TYPE_YARN ||
        !config->train.apply_rope_fusion) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "train.apply_rope_fusion = true does not go with "
                   "model.rope_type = rope and model.multi_latent_attention = "
                   "true: set it to false (--no-rope-fusion)");
}

/** FusedMLASelfAttention, which Megatron-LM's own layers have not. */
static bool fuses_down_projections(const me_config *config)
{
    return config->model.multi_latent_attention &&
           config->model.mla_down_proj_fusion &&
           config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

static me_status check_latent_fusion(const me_config *config, me_diag *diag)
{
    if (!fuses_down_projections(config) || config->model.q_lora_rank > 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.mla_down_proj_fusion = true needs a "
                   "model.q_lora_rank");
}

/** Projections down that are cut over ranks; those of Transformer Engine are
 *  not, unless they are one. */
static me_status check_latent_ranks(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    const uint64_t tensor = (uint64_t)config->parallel.tensor;
    if (!m->multi_latent_attention ||
        (config->impl.transformer == ME_TRANSFORMER_ENGINE &&
         !fuses_down_projections(config))) {
        return ME_OK;
    }
    const me_status status = me_divides(
        "parallel.tensor", tensor, "model.q_lora_rank", m->q_lora_rank, diag);
    return status != ME_OK
               ? status
               : me_divides("parallel.tensor", tensor,
                            "model.kv_lora_rank + model.qk_pos_emb_head_dim",
                            m->kv_lora_rank + m->qk_pos_emb_head_dim, diag);
}

static me_status check_mtp_depths(const me_config *config, me_diag *diag)
{
    const int32_t most = 2;
    if (config->model.mtp_num_layers <= most) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.mtp_num_layers = %d: at most %d depths are modelled",
                   (int)config->model.mtp_num_layers, (int)most);
}

static me_status check_mtp_positions(const me_config *config, me_diag *diag)
{
    if (config->model.mtp_num_layers == 0 ||
        (config->model.position_embedding != ME_POSITION_LEARNED_ABSOLUTE &&
         config->model.position_embedding != ME_POSITION_RELATIVE)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.mtp_num_layers = %d needs "
                   "model.position_embedding_type = rope or none, not "
                   "%s",
                   (int)config->model.mtp_num_layers,
                   me_choice_word(me_position_embedding_choices,
                                  (int)config->model.position_embedding));
}

static me_status check_mtp_recompute(const me_config *config, me_diag *diag)
{
    const me_recompute_config *r = &config->recompute;
    if (config->model.mtp_num_layers == 0 ||
        r->granularity != ME_RECOMPUTE_FULL ||
        r->method != ME_RECOMPUTE_UNIFORM || r->num_layers == 1) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "recompute.num_layers = %d must be 1 with "
                   "recompute.method = uniform and model.mtp_num_layers = %d",
                   (int)r->num_layers, (int)config->model.mtp_num_layers);
}

/** A checkpoint keeps this rank's part of its input, in the place of the input's
 * data. Of a depth behind the first that is the tensor which
 * MultiTokenPredictionBlock has put into the list that it concatenates. */
static me_status check_mtp_distributed(const me_config *config, me_diag *diag)
{
    const me_recompute_config *r = &config->recompute;
    if (config->model.mtp_num_layers < 2 ||
        r->granularity != ME_RECOMPUTE_FULL ||
        r->method != ME_RECOMPUTE_UNIFORM || !r->distribute_saved_activations) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "recompute.distribute_saved_activations = true "
                   "(--distribute-saved-activations) with recompute.method = "
                   "uniform does not go with model.mtp_num_layers = %d, whose "
                   "outputs Megatron-LM then cannot concatenate: leave it "
                   "out, or take one depth",
                   (int)config->model.mtp_num_layers);
}

/** The last stage has an output weight that it does not use then, and waits
 * for its gradient. */
static me_status check_mtp_tied(const me_config *config, me_diag *diag)
{
    if (config->model.mtp_num_layers == 0 || config->parallel.pipeline == 1 ||
        config->model.untie_embeddings_and_output_weights ||
        !config->optimizer.overlap_grad_reduce) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "optimizer.overlap_grad_reduce = true with "
                   "model.mtp_num_layers = %d and parallel.pipeline = %d needs "
                   "model.untie_embeddings_and_output_weights = true",
                   (int)config->model.mtp_num_layers,
                   (int)config->parallel.pipeline);
}

/** Of an option that is on and whose function is modelled compiled alone. */
static me_status check_compiled(const me_config *config, const char *option,
                                me_diag *diag)
{
    return config->train.torch_compile
               ? ME_OK
               : me_fail(diag, ME_ERR_UNSUPPORTED,
                         "%s = true with train.torch_compile = false is not "
                         "modelled",
                         option);
}

/** MLATransformerConfig: "Output gate is not supported for MLA yet." */
static me_status check_output_gate(const me_config *config, me_diag *diag)
{
    if (!config->model.attention_output_gate) {
        return ME_OK;
    }
    if (config->model.multi_latent_attention) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.attention_output_gate = true does not go with "
                       "model.multi_latent_attention = true");
    }
    if (me_is_muon(config->optimizer.kind) &&
        config->optimizer.muon_split_qkv) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.attention_output_gate = true does not go with "
                       "optimizer.muon_split_qkv = true, whose parts of the "
                       "projection leave the gate out");
    }
    return check_compiled(config, "model.attention_output_gate", diag);
}

/** Megatron-Bridge's norm of a projection's output knows no bias that is still
 * to be added. */
static me_status check_norms_and_bias(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (m->norm_placement == ME_NORMS_PRE || !m->add_bias_linear) {
        return ME_OK;
    }
    return me_fail(
        diag, ME_ERR_CONFIG,
        "model.norm_placement = %s needs model.add_bias_linear = "
        "false (--disable-bias-linear): a norm after a sub-layer is "
        "before its bias is added",
        me_choice_word(me_norm_placement_choices, (int)m->norm_placement));
}

/** Of MLA: "qk_l2_norm is not supported with MLA." */
static me_status check_l2_norm(const me_config *config, me_diag *diag)
{
    if (!config->model.qk_l2_norm) {
        return ME_OK;
    }
    if (config->model.multi_latent_attention ||
        config->model.qk_layernorm_across_heads) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.qk_l2_norm = true does not go with "
                       "model.multi_latent_attention = true or "
                       "model.qk_layernorm_across_heads = true");
    }
    return check_compiled(config, "model.qk_l2_norm", diag);
}

/** TransformerConfig reads them whatever the positions are. */
static me_status check_no_rope(const me_config *config, me_diag *diag)
{
    const int32_t n = config->model.num_layers;
    if (config->model.no_rope_freq[0] == '\0' || n < 1) {
        return ME_OK;
    }
    bool *lacks_rope = me_alloc((size_t)n, sizeof *lacks_rope, "rope.layers");
    if (lacks_rope == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for layers");
    }
    const me_status status =
        me_no_rope_layers_read(config->model.no_rope_freq, n, diag, lacks_rope);
    me_free(lacks_rope);
    return status;
}

/** Each rank would have to gather the heads of the others. */
static me_status check_norms_of_heads(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (!m->qk_layernorm_across_heads) {
        return ME_OK;
    }
    if (!m->qk_layernorm || m->multi_latent_attention) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.qk_layernorm_across_heads = true needs "
                       "model.qk_layernorm = true and "
                       "model.multi_latent_attention = false");
    }
    if (config->parallel.tensor == 1) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.qk_layernorm_across_heads = true with "
                   "parallel.tensor = %d is not modelled: give 1",
                   (int)config->parallel.tensor);
}

me_rule *const me_model_rules[] = {
    check_latent_fusion,    check_latent_heads,
    check_latent_recompute, check_latent_rotary,
    check_latent_ranks,     check_output_gate,
    check_norms_and_bias,   check_norms_of_heads,
    check_l2_norm,          check_no_rope,
    check_mtp_depths,       check_mtp_positions,
    check_mtp_recompute,    check_mtp_distributed,
    check_mtp_tied,         NULL,
};
