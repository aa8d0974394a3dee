/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/policy.h"

#include "base/alloc.h"
#include "sac/knapsack.h"

#include <math.h>

/** Operations that are saved together, under the first of them. */
typedef struct group {
    uint32_t head; /**< of an operation: the way to its group's */
    uint64_t bytes;
    double runtime_ms;
    bool must_save;
    bool must_recompute;
    bool is_saved;
} group;

static uint32_t head_of(const group *groups, uint32_t op)
{
    while (groups[op].head != op) {
        op = groups[op].head;
    }
    return op;
}

static void join(group *groups, uint32_t a, uint32_t b)
{
    const uint32_t x = head_of(groups, a);
    const uint32_t y = head_of(groups, b);
    groups[x > y ? x : y].head = x > y ? y : x;
}

static void join_ops(const me_sac_stats *stats, group *groups)
{
    uint32_t random = stats->n_ops;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        groups[i].head = i;
    }
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        const me_sac_op *op = &stats->ops[i];
        if (op->in_place_of >= 0) {
            join(groups, i, (uint32_t)op->in_place_of);
        }
        if (op->is_random && !stats->stores_random) {
            if (random < stats->n_ops) {
                join(groups, random, i);
            }
            random = i;
        }
    }
}

/** Weigh the groups and see what is settled. */
static void sum_groups(const me_sac_stats *stats, group *groups)
{
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        const me_sac_op *op = &stats->ops[i];
        group *g = &groups[head_of(groups, i)];
        g->bytes += op->bytes;
        g->runtime_ms += op->runtime_ms;
        g->must_save = g->must_save || op->in_place_of == (int32_t)i ||
                       (op->is_random && stats->stores_random);
        g->must_recompute = g->must_recompute || op->is_view_like;
    }
}

/**
 * Save what must be or costs nothing; the rest are the items.
 *
 * @param left  bytes of the budget; become fewer
 * @return whether the rules can be kept
 */
static bool settle(group *groups, uint32_t n_ops, uint64_t *left)
{
    for (uint32_t i = 0; i < n_ops; i++) {
        group *g = &groups[i];
        if (g->head != i || !g->must_save) {
            continue;
        }
        if (g->must_recompute || g->bytes > *left) {
            return false;
        }
        *left -= g->bytes;
        g->is_saved = true;
    }
    return true;
}

static me_status fill(group *groups, uint32_t n_ops, uint64_t left)
{
    me_knapsack_item *items =
        me_alloc((size_t)n_ops + 1, sizeof *items, "sac.items");
    if (items == NULL) {
        return ME_ERR_NOMEM;
    }
    uint32_t n_items = 0;
    for (uint32_t i = 0; i < n_ops; i++) {
        group *g = &groups[i];
        if (g->head != i || g->must_save || g->must_recompute ||
            g->runtime_ms <= 0 || g->bytes > left) {
            continue;
        }
        if (g->bytes == 0) {
            g->is_saved = true;
            continue;
        }
        items[n_items++] = (me_knapsack_item){
            .weight = g->bytes, .value = g->runtime_ms, .tag = i};
    }
    const me_status status = me_knapsack_solve(items, n_items, left);
    for (uint32_t i = 0; status == ME_OK && i < n_items; i++) {
        groups[items[i].tag].is_saved = items[i].is_taken;
    }
    me_free(items);
    return status;
}

me_status me_sac_policy(const me_sac_stats *stats, double budget,
                        bool *saves_out, bool *is_feasible_out, me_diag *diag)
{
    if (!(budget >= 0 && budget <= 1)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: a memory budget of %g: it is a part of the memory, "
                       "between 0 and 1",
                       stats->fqn, budget);
    }
    group *groups =
        me_alloc((size_t)stats->n_ops + 1, sizeof *groups, "sac.groups");
    me_status status = groups != NULL ? ME_OK : ME_ERR_NOMEM;
    bool is_feasible = false;
    if (status == ME_OK) {
        uint64_t left =
            (uint64_t)ceil(budget * (double)me_sac_stats_bytes(stats));
        join_ops(stats, groups);
        sum_groups(stats, groups);
        is_feasible = settle(groups, stats->n_ops, &left);
        if (is_feasible) {
            status = fill(groups, stats->n_ops, left);
        }
    }
    if (status != ME_OK) {
        me_free(groups);
        return me_fail(diag, status, "no memory for the policy of %s",
                       stats->fqn);
    }
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        saves_out[i] = is_feasible && groups[head_of(groups, i)].is_saved;
    }
    *is_feasible_out = is_feasible;
    me_free(groups);
    return ME_OK;
}
