/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/routed_counts.h"

#include "base/alloc.h"
#include "base/size.h"
#include "parallel/expert_rows.h"

static uint64_t tokens(const me_config *config)
{
    const uint64_t parts =
        config->parallel.sequence ? (uint64_t)config->parallel.tensor : 1;
    return config->model.rank_seq_length * config->train.micro_batch_size /
           parts;
}

uint64_t me_routed_rows(const me_config *config)
{
    return tokens(config) * config->moe.router_topk;
}

me_status me_routed_refuse_missing(const me_plan *plan,
                                   const me_routing_place *at, me_diag *diag)
{
    return me_fail(
        diag, ME_ERR_CONFIG,
        "%s: no line for iteration %d, layer %d, micro-batch %d, rank %d",
        plan->config->moe.tokens, (int)at->iteration, (int)at->layer,
        (int)at->microbatch, (int)at->rank);
}

/** No expert twice, and all of a token's choices, less those that a capacity may
 *  have taken before they were counted. */
static me_status check_line(const me_plan *plan, const me_routing_row *row,
                            me_diag *diag)
{
    const me_config *c = plan->config;
    const uint64_t *counts = me_routing_row_counts(&plan->routing, row);
    const uint64_t all = me_routed_rows(c);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < c->moe.num_experts; i++) {
        if (counts[i] > tokens(c)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s, line %d: expert %llu gets %llu tokens of rank "
                           "%d, which has %llu",
                           c->moe.tokens, (int)row->line, (unsigned long long)i,
                           (unsigned long long)counts[i], (int)row->at.rank,
                           (unsigned long long)tokens(c));
        }
        sum += counts[i];
    }
    if (sum == all || (c->moe.has_capacity && sum < all)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s, line %d: all experts get %llu tokens of rank %d "
                   "together, not %llu",
                   c->moe.tokens, (int)row->line, (unsigned long long)sum,
                   (int)row->at.rank, (unsigned long long)all);
}

/** Of the row's tokens, those that leave its rank: to each expert, in place of
 *  those that were chosen, and together. */
static uint64_t send(const me_plan *plan, const me_routing_row *row)
{
    const me_config *c = plan->config;
    uint64_t *counts = me_routing_row_counts(&plan->routing, row);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < c->moe.num_experts; i++) {
        counts[i] = me_expert_rows_sent(c, tokens(c), counts[i]);
        sum += counts[i];
    }
    return sum;
}

/** What reaches the experts of the row's rank, which @p counts_out begins as 0. */
static me_status receive(const me_plan *plan, const me_routing_row *row,
                         uint32_t n_local, me_diag *diag, uint64_t *counts_out)
{
    const me_routing *r = &plan->routing;
    const me_group experts =
        me_grid_group(&plan->grid, ME_GROUP_EXPERT, row->at.rank);
    const me_group sources =
        me_grid_group(&plan->grid, ME_GROUP_EXPERT_TENSOR_EXPERT, row->at.rank);
    const size_t first =
        (size_t)me_group_index(&experts, row->at.rank) * n_local;
    for (int32_t s = 0; s < sources.size; s++) {
        me_routing_place at = row->at;
        at.rank = r->is_alone ? at.rank : me_group_member(&sources, s);
        const me_routing_row *source = me_routing_find(r, &at);
        if (source == NULL) {
            return me_routed_refuse_missing(plan, &at, diag);
        }
        const uint64_t *sent = me_routing_row_counts(r, source) + first;
        for (uint32_t i = 0; i < n_local; i++) {
            counts_out[i] += sent[i];
        }
    }
    return ME_OK;
}

me_status me_plan_receive_routed(me_plan *plan, me_diag *diag)
{
    me_routing *r = &plan->routing;
    const me_config *c = plan->config;
    const uint32_t n_local =
        (uint32_t)(c->moe.num_experts / (uint64_t)c->parallel.expert);
    r->sent = me_alloc(r->n_rows, sizeof *r->sent, "plan.sent_rows");
    uint64_t *counts = me_alloc((size_t)r->n_rows * n_local, sizeof *counts,
                                "plan.received_rows");
    if (r->sent == NULL || counts == NULL) {
        me_free(counts);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    me_status status = ME_OK;
    for (uint32_t i = 0; i < r->n_rows && status == ME_OK; i++) {
        status = check_line(plan, &r->rows[i], diag);
        if (status == ME_OK) {
            r->sent[r->rows[i].number] = send(plan, &r->rows[i]);
        }
    }
    for (uint32_t i = 0; i < r->n_rows && status == ME_OK; i++) {
        const me_routing_row *row = &r->rows[i];
        status = receive(plan, row, n_local, diag,
                         counts + (size_t)row->number * n_local);
    }
    if (status == ME_OK) {
        me_free(r->counts);
        r->counts = counts;
        r->n_experts = n_local;
        return ME_OK;
    }
    me_free(counts);
    return status;
}
