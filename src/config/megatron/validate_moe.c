/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "config/megatron/megatron_rules.h"
#include "config/megatron/parameters.h"
#include "parallel/routing.h"

/* What a job with experts must keep to, as Megatron-LM core_v0.19.0 and its
 * TransformerConfig check it, and what memest does not model. */

static bool has_experts(const me_config *config)
{
    return config->moe.num_experts > 0;
}

static me_status check_experts_given(const me_config *config, me_diag *diag)
{
    if (has_experts(config) || config->parallel.expert == 1) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.expert = %d needs experts: give moe.num_experts",
                   (int)config->parallel.expert);
}

static me_status check_division(const me_config *config, me_diag *diag)
{
    const uint64_t experts = config->moe.num_experts;
    const uint64_t ranks = (uint64_t)config->parallel.expert;
    if (experts % ranks != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.expert = %llu does not divide "
                       "moe.num_experts = %llu",
                       (unsigned long long)ranks, (unsigned long long)experts);
    }
    if (experts / ranks > ME_MAX_LOCAL_EXPERTS) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.num_experts / parallel.expert = %llu: at most %d "
                       "experts of a rank are run",
                       (unsigned long long)(experts / ranks),
                       (int)ME_MAX_LOCAL_EXPERTS);
    }
    return ME_OK;
}

static me_status check_topk(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    if (m->router_topk <= m->num_experts) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "moe.router_topk = %llu must be at most moe.num_experts = "
                   "%llu",
                   (unsigned long long)m->router_topk,
                   (unsigned long long)m->num_experts);
}

static me_status check_width(const me_config *config, me_diag *diag)
{
    const uint64_t ranks = (uint64_t)config->parallel.expert_tensor;
    if (config->moe.ffn_hidden_size % ranks == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.expert_tensor = %llu does not divide "
                   "moe.ffn_hidden_size = %llu",
                   (unsigned long long)ranks,
                   (unsigned long long)config->moe.ffn_hidden_size);
}

static me_status check_shared_width(const me_config *config, me_diag *diag)
{
    const uint64_t width = config->moe.shared_expert_intermediate_size;
    if (width % (uint64_t)config->parallel.tensor == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.tensor = %d does not divide "
                   "moe.shared_expert_intermediate_size = %llu",
                   (int)config->parallel.tensor, (unsigned long long)width);
}

static me_status check_grid(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const uint64_t product = me_size_mul(
        me_size_mul((uint64_t)p->expert_tensor, (uint64_t)p->expert),
        (uint64_t)p->pipeline);
    if ((uint64_t)p->world_size % product == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.world_size = %d is no multiple of "
                   "parallel.expert_tensor x parallel.expert x "
                   "parallel.pipeline = %d x %d x %d",
                   (int)p->world_size, (int)p->expert_tensor, (int)p->expert,
                   (int)p->pipeline);
}

static me_status check_tensor(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (p->tensor > 1 && !p->sequence) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.num_experts = %d with parallel.tensor = %d needs "
                       "parallel.sequence = true",
                       (int)config->moe.num_experts, (int)p->tensor);
    }
    return ME_OK;
}

static bool is_grouped(const me_config *config)
{
    return config->moe.grouped_gemm &&
           config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

/** TransformerConfig, TEGroupedMLP and SharedExpertMLP assert it. MLP.forward()
 *  adds an expert's bias in place, to what is a view of Transformer Engine's
 *  linear, at which PyTorch stops: seen on a card. */
static me_status check_biases(const me_config *config, me_diag *diag)
{
    const char *other = NULL;
    if (config->parallel.expert_tensor > 1) {
        other = "parallel.expert_tensor = 1";
    } else if (config->moe.shared_expert_intermediate_size > 0) {
        other = "no moe.shared_expert_intermediate_size";
    } else if (is_grouped(config) && config->train.bias_dropout_fusion) {
        other = "train.bias_dropout_fusion = false (--no-bias-dropout-fusion)";
    } else if (!is_grouped(config) && config->own->fork_sign == NULL &&
               config->impl.transformer == ME_TRANSFORMER_ENGINE) {
        other = "moe.grouped_gemm = true (--moe-grouped-gemm), since "
                "Megatron-LM ends in the first expert of Transformer Engine's "
                "that adds one";
    }
    return config->model.add_bias_linear && other != NULL
               ? me_fail(diag, ME_ERR_CONFIG,
                         "model.add_bias_linear = true with experts needs %s; "
                         "or give false (--disable-bias-linear)",
                         other)
               : ME_OK;
}

/** No fused activation takes an expert's weights beside a bias, but that of
 *  grouped experts, whose bias is part of the product. */
static me_status check_bias_fusion(const me_config *config, me_diag *diag)
{
    const bool is_swiglu = config->model.activation == ME_ACTIVATION_SWIGLU;
    const bool has_weights =
        is_swiglu || config->model.activation == ME_ACTIVATION_QUICK_GEGLU;
    const bool is_refused = config->model.add_bias_linear &&
                            config->train.bias_activation_fusion &&
                            !(has_weights && is_grouped(config));
    return is_refused
               ? me_fail(diag, ME_ERR_CONFIG,
                         "train.%s = true must be false (--no-bias-%s-fusion) "
                         "with experts and model.add_bias_linear = true: "
                         "Megatron-LM stops (--unknown warn takes a fork's or "
                         "an earlier version's job)",
                         is_swiglu ? "bias_swiglu_fusion" : "bias_gelu_fusion",
                         is_swiglu ? "swiglu" : "gelu")
               : ME_OK;
}

/** TransformerConfig and MoELayer.preprocess(). */
static me_status check_overlap(const me_config *config, me_diag *diag)
{
    const char *other = NULL;
    if (config->moe.token_dispatcher == ME_DISPATCHER_ALL_GATHER) {
        other = "moe.token_dispatcher = alltoall";
    } else if (config->moe.latent_size > 0) {
        other = "no moe.latent_size";
    } else if (config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
               config->recompute.shared_experts) {
        other = "recompute.shared_experts = false";
    }
    return config->moe.shared_expert_overlap && other != NULL
               ? me_fail(diag, ME_ERR_CONFIG,
                         "moe.shared_expert_overlap = true needs %s", other)
               : ME_OK;
}

/** What two micro-batches in turns need (TransformerConfig); NULL: it is there. */
static const char *missing_for_turns(const me_config *config)
{
    const me_recompute_config *r = &config->recompute;
    if (config->parallel.pipeline > 1 &&
        config->parallel.virtual_pipeline == 1) {
        return "parallel.virtual_pipeline over 1 where parallel.pipeline is";
    }
    if (config->parallel.expert == 1) {
        return "parallel.expert over 1";
    }
    if (config->moe.token_dispatcher == ME_DISPATCHER_ALL_GATHER) {
        return "moe.token_dispatcher = alltoall or flex";
    }
    if (r->granularity == ME_RECOMPUTE_FULL) {
        return "recompute.granularity = none or selective";
    }
    if (r->granularity == ME_RECOMPUTE_SELECTIVE && r->moe) {
        return "recompute.moe = false (no --recompute-modules moe)";
    }
    if (config->train.params_dtype == ME_DTYPE_FLOAT32) {
        return "train.params_dtype = bfloat16 or float16";
    }
    if (config->moe.shared_expert_overlap) {
        return "moe.shared_expert_overlap = false";
    }
    return config->model.mtp_num_layers > 1
               ? "model.mtp_num_layers of at most 1"
               : NULL;
}

/** build_mtp_layer_callables() asserts it: a depth's layer is of the kind of the
 *  decoder's last. */
static me_status check_turns_of_depths(const me_config *config, me_diag *diag)
{
    uint64_t n_moe = 0;
    bool is_last_moe = false;
    const me_status status =
        me_moe_layers_count(config, diag, &n_moe, &is_last_moe);
    return status != ME_OK || is_last_moe || config->model.mtp_num_layers == 0
               ? status
               : me_fail(diag, ME_ERR_CONFIG,
                         "moe.overlap_expert_comm = true with "
                         "model.mtp_num_layers needs experts in the last "
                         "layer, of whose kind depths are: moe.layer_freq = %s",
                         config->moe.layer_freq);
}

static me_status check_turns(const me_config *config, me_diag *diag)
{
    if (!config->moe.overlap_expert_comm) {
        return ME_OK;
    }
    const char *missing = missing_for_turns(config);
    if (missing != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.overlap_expert_comm = true "
                       "(--overlap-moe-expert-parallel-comm) needs %s",
                       missing);
    }
    const char *other =
        config->parallel.torch_fsdp2 ? "parallel.torch_fsdp2 = true"
        : !config->pipeline.is_own   ? "an order of pipeline.schedule"
                                     : NULL;
    return other == NULL
               ? check_turns_of_depths(config, diag)
               : me_fail(
                     diag, ME_ERR_UNSUPPORTED,
                     "moe.overlap_expert_comm = true with %s is not modelled",
                     other);
}

/** Options of it; checked without experts as well. */
static me_status check_turns_given(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    if (m->overlap_expert_comm && has_experts(config)) {
        return m->delay_wgrad_compute &&
                       config->impl.transformer != ME_TRANSFORMER_ENGINE
                   ? me_fail(diag, ME_ERR_CONFIG,
                             "moe.delay_wgrad_compute = true "
                             "(--delay-wgrad-compute) needs impl.transformer = "
                             "transformer_engine")
                   : ME_OK;
    }
    const char *option = m->overlap_expert_comm   ? "moe.overlap_expert_comm"
                         : m->delay_wgrad_compute ? "moe.delay_wgrad_compute"
                         : m->overlap_early_attention
                             ? "moe.overlap_early_attention"
                             : NULL;
    return option == NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG, "%s = true needs %s", option,
                         m->overlap_expert_comm
                             ? "experts: give moe.num_experts"
                             : "moe.overlap_expert_comm = true "
                               "(--overlap-moe-expert-parallel-comm)");
}

static me_status check_activation(const me_config *config, me_diag *diag)
{
    return config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
                   config->recompute.moe_act && !config->moe.grouped_gemm
               ? me_fail(diag, ME_ERR_CONFIG,
                         "recompute.moe_act = true (--recompute-modules "
                         "moe_act) needs moe.grouped_gemm = true "
                         "(--moe-grouped-gemm)")
               : ME_OK;
}

/** MoELayer asserts it: the projections are Transformer Engine's. */
static me_status check_latents(const me_config *config, me_diag *diag)
{
    return config->moe.latent_size > 0 &&
                   config->impl.transformer != ME_TRANSFORMER_ENGINE
               ? me_fail(diag, ME_ERR_CONFIG,
                         "moe.latent_size = %llu needs impl.transformer = "
                         "transformer_engine",
                         (unsigned long long)config->moe.latent_size)
               : ME_OK;
}

/** x.reshape(-1, columns / (2 · size), 2, size). */
static me_status check_interleaving(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const uint64_t width =
        m->ffn_hidden_size / (uint64_t)config->parallel.expert_tensor;
    return m->glu_interleave_size > 0 && width % m->glu_interleave_size != 0
               ? me_divides("moe.glu_interleave_size", m->glu_interleave_size,
                            "moe.ffn_hidden_size / parallel.expert_tensor",
                            width, diag)
               : ME_OK;
}

static me_status check_probs_on_input(const me_config *config, me_diag *diag)
{
    return config->moe.apply_probs_on_input && config->moe.router_topk != 1
               ? me_fail(diag, ME_ERR_CONFIG,
                         "moe.apply_probs_on_input = true needs "
                         "moe.router_topk = 1, not %llu",
                         (unsigned long long)config->moe.router_topk)
               : ME_OK;
}

static me_status check_imbalance(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const uint64_t ranks = (uint64_t)config->parallel.expert;
    const uint64_t local = m->num_experts / ranks;
    const uint64_t picks = local < m->router_topk ? local : m->router_topk;
    const double most = (double)(ranks * picks) / (double)m->router_topk;
    if (m->imbalance != 1.0 && m->tokens[0] != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.imbalance = %g beside moe.tokens = %s: give one of "
                       "them",
                       m->imbalance, m->tokens);
    }
    if (m->imbalance > most) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.imbalance = %g must be at most %g: a rank's %llu "
                       "experts cannot get more of %llu ranks' tokens",
                       m->imbalance, most, (unsigned long long)local,
                       (unsigned long long)ranks);
    }
    if (m->imbalance < 1.0 && ranks == 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.imbalance = %g must be 1 where parallel.expert is "
                       "1: its only rank gets all tokens",
                       m->imbalance);
    }
    return ME_OK;
}

me_rule *const me_expert_grid_rules[] = {
    check_experts_given, check_turns_given, check_grid, check_activation, NULL,
};

me_rule *const me_moe_rules[] = {
    check_division,  check_topk,    check_width,        check_shared_width,
    check_tensor,    check_biases,  check_bias_fusion,  check_overlap,
    check_turns,     check_latents, check_interleaving, check_probs_on_input,
    check_imbalance, NULL,
};
