/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/token_counts.h"

#include "base/alloc.h"
#include "parallel/moe_layers.h"
#include "parallel/skewed_routing.h"
#include "plan/routed_counts.h"

static uint64_t local_experts(const me_config *config)
{
    return config->moe.num_experts / (uint64_t)config->parallel.expert;
}

/** Rows that a rank gets of a micro-batch if all ranks get the same. */
static uint64_t balanced_rows(const me_config *config)
{
    return me_routed_rows(config) * (uint64_t)config->parallel.expert_tensor;
}

/** All ranks of an expert group together get what they have, unless each was
 *  measured alone, or padding comes to it; less where some are dropped. Counts of
 *  what ranks' own tokens chose have been checked line by line. */
static me_status check_sum(const me_plan *plan, const me_routing_place *at,
                           me_diag *diag)
{
    if (plan->routing.is_alone || plan->routing.is_routed ||
        plan->config->moe.router_padding_for_quantization) {
        return ME_OK;
    }
    const me_group group =
        me_grid_group(&plan->grid, ME_GROUP_EXPERT, at->rank);
    if (me_group_member(&group, 0) != at->rank) {
        return ME_OK; // its first rank has been asked
    }
    const uint64_t balanced = balanced_rows(plan->config);
    uint64_t sum = 0;
    for (int32_t i = 0; i < group.size; i++) {
        me_routing_place there = *at;
        there.rank = me_group_member(&group, i);
        if (!me_routing_has(&plan->routing, &there)) {
            return ME_OK; // said when its turn comes
        }
        sum += me_routing_received(&plan->routing, &there, balanced);
    }
    const uint64_t total = balanced * (uint64_t)group.size;
    if (sum == total || (plan->config->moe.has_capacity && sum < total)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s: iteration %d, layer %d, micro-batch %d: the experts of "
                   "rank %d's group get %llu tokens together, not %llu",
                   plan->config->moe.tokens, (int)at->iteration, (int)at->layer,
                   (int)at->microbatch, (int)at->rank, (unsigned long long)sum,
                   (unsigned long long)total);
}

static me_status check_layer(const me_plan *plan, int32_t rank, int32_t layer,
                             me_diag *diag)
{
    const me_train_config *train = &plan->config->train;
    me_routing_place at = {.rank = rank, .layer = layer};
    for (at.iteration = 0; at.iteration < train->iterations; at.iteration++) {
        for (at.microbatch = 0; at.microbatch < train->num_microbatches;
             at.microbatch++) {
            if (!me_routing_has(&plan->routing, &at)) {
                return me_routed_refuse_missing(plan, &at, diag);
            }
            const me_status status = check_sum(plan, &at, diag);
            if (status != ME_OK) {
                return status;
            }
        }
    }
    return ME_OK;
}

/** Has the rank this layer, and experts in it? Those of multi-token prediction are
 *  as the decoder's last. */
static bool has_experts(const me_plan *plan, int32_t rank, int32_t layer)
{
    const int32_t n_layers = plan->config->model.num_layers;
    for (int32_t c = 0; c < plan->n_chunks; c++) {
        const me_stage stage = me_plan_stage(plan, rank, c);
        if (layer >= n_layers) {
            if (stage.has_mtp &&
                layer < n_layers + plan->config->model.mtp_num_layers) {
                return plan->is_moe_layer[n_layers - 1];
            }
        } else if (layer >= stage.first_layer &&
                   layer < stage.first_layer + stage.n_layers) {
            return plan->is_moe_layer[layer];
        }
    }
    return false;
}

/** Is there a line for everything that will be asked? */
static me_status check_rank(const me_plan *plan, int32_t rank, me_diag *diag)
{
    const int32_t n_layers = plan->config->model.num_layers;
    const int32_t n_depths = plan->config->model.mtp_num_layers;
    me_status status = ME_OK;
    for (int32_t layer = 0; layer < n_layers + n_depths && status == ME_OK;
         layer++) {
        if (has_experts(plan, rank, layer)) {
            status = check_layer(plan, rank, layer, diag);
        }
    }
    return status;
}

/** Where a line's count is of no dispatch of the job: that is another job's. */
static me_status check_row(const me_plan *plan, const me_routing_row *row,
                           me_diag *diag)
{
    const me_config *c = plan->config;
    const me_routing_place *at = &row->at;

    const struct {
        const char *what;
        int32_t number;
        int32_t count;
        const char *key;
    } limits[] = {
        {"rank", at->rank, c->parallel.world_size, "parallel.world_size"},
        {"iteration", at->iteration, c->train.iterations, "train.iterations"},
        {"micro-batch", at->microbatch, c->train.num_microbatches,
         "the number of micro-batches"},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].number >= limits[i].count) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s, line %d: %s %d, from 0, is beyond %s = %d",
                           c->moe.tokens, (int)row->line, limits[i].what,
                           (int)limits[i].number, limits[i].key,
                           (int)limits[i].count);
        }
    }
    return has_experts(plan, at->rank, at->layer)
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "%s, line %d: rank %d has no layer %d with experts",
                         c->moe.tokens, (int)row->line, (int)at->rank,
                         (int)at->layer);
}

static me_status check_rows(const me_plan *plan, me_diag *diag)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; i < plan->routing.n_rows && status == ME_OK; i++) {
        status = check_row(plan, &plan->routing.rows[i], diag);
    }
    return status;
}

static me_status read_tokens(me_plan *plan, me_diag *diag)
{
    const uint32_t n_experts[] = {(uint32_t)local_experts(plan->config),
                                  (uint32_t)plan->config->moe.num_experts};
    me_status status = me_routing_read_file(plan->config->moe.tokens, n_experts,
                                            diag, &plan->routing);
    if (status == ME_OK) {
        status = check_rows(plan, diag);
    }
    if (status == ME_OK && plan->routing.is_routed) {
        status = me_plan_receive_routed(plan, diag);
    }
    for (int32_t r = 0;
         status == ME_OK && r < plan->config->parallel.world_size; r++) {
        status = check_rank(plan, r, diag);
    }
    return status;
}

static me_status skew_tokens(me_plan *plan, me_diag *diag)
{
    const me_config *c = plan->config;
    const me_skew skew = {
        .exponent = c->moe.skew,
        .seed = c->moe.routing_seed,
        .n_experts = (uint32_t)c->moe.num_experts,
        .topk = (uint32_t)c->moe.router_topk,
        .n_layers = (uint32_t)(c->model.num_layers + c->model.mtp_num_layers),
        .rows = balanced_rows(c) * (uint64_t)c->parallel.expert,
    };
    return me_skewed_routing(&skew, diag, &plan->routing);
}

me_status me_plan_route(me_plan *plan, me_diag *diag)
{
    const me_config *config = plan->config;
    const int32_t layers = config->model.num_layers;
    plan->routing = (me_routing){.imbalance = config->moe.imbalance};
    if (config->moe.num_experts == 0) {
        return ME_OK;
    }
    plan->is_moe_layer =
        me_alloc((size_t)layers, sizeof(bool), "plan.moe_layers");
    if (plan->is_moe_layer == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    const me_status status = me_moe_layers_read(config->moe.layer_freq, layers,
                                                diag, plan->is_moe_layer);
    if (status == ME_OK && config->moe.is_skewed) {
        return skew_tokens(plan, diag);
    }
    if (status != ME_OK || config->moe.tokens[0] == '\0') {
        return status;
    }
    return read_tokens(plan, diag);
}
