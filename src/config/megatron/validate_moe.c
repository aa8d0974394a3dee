/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "config/megatron/megatron_rules.h"
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
                       "moe.num_experts / parallel.expert = %llu must be at "
                       "most %d",
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
                       "parallel.sequence = false must be true with experts "
                       "and parallel.tensor = %d",
                       (int)p->tensor);
    }
    return ME_OK;
}

static me_status check_dispatcher(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (config->moe.token_dispatcher != ME_DISPATCHER_ALL_GATHER ||
        (p->expert == 1 && p->expert_tensor == 1)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "moe.token_dispatcher = allgather over %d x %d expert ranks "
                   "is not modelled: give alltoall "
                   "(--moe-token-dispatcher-type alltoall)",
                   (int)p->expert, (int)p->expert_tensor);
}

static me_status check_biases(const me_config *config, me_diag *diag)
{
    if (!config->model.add_bias_linear) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.add_bias_linear = true with experts is not modelled: "
                   "give false (--disable-bias-linear)");
}

static me_status check_depths(const me_config *config, me_diag *diag)
{
    if (config->model.mtp_num_layers == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.mtp_num_layers = %d with experts is not modelled: "
                   "give 0",
                   (int)config->model.mtp_num_layers);
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
    check_experts_given,
    check_grid,
    NULL,
};

me_rule *const me_moe_rules[] = {
    check_division,  check_topk,
    check_width,     check_shared_width,
    check_tensor,    check_dispatcher,
    check_biases,    check_depths,
    check_imbalance, NULL,
};
