/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/greedy.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <float.h>
#include <stdlib.h>

/** What is needed while an order is made. */
typedef struct builder {
    me_sac_greedy *greedy;
    const me_sac_stats *stats;
    me_int_set heads;    /**< of groups in place, in the order of a dict */
    me_int_set in_place; /**< operations that work in place */
    me_int_set views;
    me_int_set candidates;
} builder;

static bool is_in_place(const me_sac_op *op)
{
    return op->in_place_of >= 0;
}

/** `set(range(n))`. */
static void add_all(const me_sac_stats *stats, me_int_set *set)
{
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        me_int_set_add(set, (int32_t)i);
    }
}

static void sort_ops(builder *b)
{
    me_sac_greedy *g = b->greedy;
    g->random_head = ME_SAC_NO_OP;
    for (uint32_t i = 0; i < b->stats->n_ops; i++) {
        const me_sac_op *op = &b->stats->ops[i];
        if (op->is_view_like) {
            me_int_set_add(&b->views, (int32_t)i);
        }
        if (op->is_random) {
            if (g->random_head == ME_SAC_NO_OP) {
                g->random_head = (int32_t)i;
            }
            me_int_set_add(&g->random, (int32_t)i);
        }
        if (is_in_place(op)) {
            ME_ASSERT((uint32_t)op->in_place_of < b->stats->n_ops);
            me_int_set *group = &g->groups[op->in_place_of];
            me_int_set_add(group, op->in_place_of);
            me_int_set_add(group, (int32_t)i);
            me_int_set_add(&b->in_place, (int32_t)i);
        }
    }
    me_int_set_update(&g->recomputed, &b->views);
}

static uint32_t count_random(const builder *b, int32_t head)
{
    uint32_t count = 0;
    uint32_t position = 0;
    int32_t op = 0;
    while (me_int_set_next(&b->greedy->groups[head], &position, &op)) {
        count += me_int_set_has(&b->greedy->random, op) ? 1 : 0;
    }
    return count;
}

/** Heads of groups come in the order of the first operation in place on them. */
static void store(builder *b)
{
    me_sac_greedy *g = b->greedy;
    const bool stores_random = b->stats->stores_random;
    if (stores_random && g->random_head != ME_SAC_NO_OP) {
        me_int_set_add(&g->stored, g->random_head);
    }
    for (uint32_t i = 0; i < b->stats->n_ops; i++) {
        const me_sac_op *op = &b->stats->ops[i];
        if (!is_in_place(op) || me_int_set_has(&b->heads, op->in_place_of)) {
            continue;
        }
        const int32_t head = op->in_place_of;
        me_int_set_add(&b->heads, head);
        if (me_int_set_has(&b->in_place, head) ||
            (stores_random && count_random(b, head) % 2 == 1)) {
            me_int_set_add(&g->stored, head);
        }
    }
}

static void choose_candidates(builder *b)
{
    const me_sac_greedy *g = b->greedy;
    if (g->random_head != ME_SAC_NO_OP &&
        !me_int_set_has(&g->stored, g->random_head)) {
        me_int_set_add(&b->candidates, g->random_head);
    }
    me_int_set_subtract(&b->heads, &g->stored);
    me_int_set_update(&b->candidates, &b->heads);
    me_int_set others = {.slots = NULL};
    add_all(b->stats, &others);
    me_int_set_subtract(&others, &g->recomputed);
    me_int_set_subtract(&others, &g->stored);
    me_int_set_subtract(&others, &b->in_place);
    me_int_set_subtract(&others, &g->random);
    me_int_set_update(&b->candidates, &others);
    me_int_set_fini(&others);
}

void me_sac_sum(const me_sac_stats *stats, const me_int_set *set,
                uint64_t *bytes_out, double *runtime_ms_out)
{
    uint64_t bytes = 0;
    double runtime_ms = 0;
    uint32_t position = 0;
    int32_t op = 0;
    while (me_int_set_next(set, &position, &op)) {
        bytes += stats->ops[op].bytes;
        runtime_ms += stats->ops[op].runtime_ms;
    }
    *bytes_out = bytes;
    *runtime_ms_out = runtime_ms;
}

void me_sac_greedy_add_group(const me_sac_greedy *greedy, int32_t op,
                             me_int_set *set)
{
    me_int_set_add(set, op);
    me_int_set_update(set, &greedy->groups[op]);
    if (op == greedy->random_head) {
        me_int_set_update(set, &greedy->random);
    }
}

/** As me_sac_greedy_add_group(), but for a candidate PyTorch adds the random
 *  ones from a list, which can make another order of the same set. */
static me_status weigh(const builder *b, int32_t op, me_sac_candidate *to)
{
    const me_sac_greedy *g = b->greedy;
    me_int_set members = {.slots = NULL};
    me_int_set_add(&members, op);
    me_int_set_update(&members, &g->groups[op]);
    for (uint32_t i = 0; op == g->random_head && i < g->n_ops; i++) {
        if (b->stats->ops[i].is_random) {
            me_int_set_add(&members, (int32_t)i);
        }
    }
    to->op = op;
    me_sac_sum(b->stats, &members, &to->bytes, &to->runtime_ms);
    to->bytes_per_ms =
        to->runtime_ms > 0 ? (double)to->bytes / to->runtime_ms : DBL_MAX;
    const me_status status = me_int_set_status(&members);
    me_int_set_fini(&members);
    return status;
}

/** Stable, the most per millisecond first; by insertion, from the end of what
 *  is sorted. */
static void sort_candidates(me_sac_greedy *g)
{
    for (uint32_t i = 1; i < g->n_candidates; i++) {
        const me_sac_candidate moved = g->candidates[i];
        uint32_t at = i;
        while (at > 0 &&
               g->candidates[at - 1].bytes_per_ms < moved.bytes_per_ms) {
            g->candidates[at] = g->candidates[at - 1];
            at--;
        }
        g->candidates[at] = moved;
    }
}

static me_status list_candidates(const builder *b)
{
    me_sac_greedy *g = b->greedy;
    g->candidates = me_alloc((size_t)b->candidates.used + 1,
                             sizeof *g->candidates, "sac.candidates");
    me_status status = g->candidates != NULL ? ME_OK : ME_ERR_NOMEM;
    uint32_t position = 0;
    int32_t op = 0;
    while (status == ME_OK && me_int_set_next(&b->candidates, &position, &op)) {
        status = weigh(b, op, &g->candidates[g->n_candidates++]);
    }
    if (status == ME_OK) {
        sort_candidates(g);
    }
    return status;
}

static me_status first_failure(const builder *b)
{
    const me_sac_greedy *g = b->greedy;
    const me_int_set *sets[] = {&b->candidates, &b->in_place, &g->recomputed,
                                &g->stored, &g->random};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (me_int_set_status(sets[i]) != ME_OK) {
            return me_int_set_status(sets[i]);
        }
    }
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (me_int_set_status(&g->groups[i]) != ME_OK) {
            return me_int_set_status(&g->groups[i]);
        }
    }
    return ME_OK;
}

me_status me_sac_greedy_init(me_sac_greedy *greedy_out,
                             const me_sac_stats *stats, me_diag *diag)
{
    me_sac_greedy g = {.n_ops = stats->n_ops};
    builder b = {.greedy = &g, .stats = stats};
    g.groups =
        me_alloc((size_t)stats->n_ops + 1, sizeof *g.groups, "sac.groups");
    me_status status = ME_ERR_NOMEM;
    if (g.groups == NULL) {
        goto out;
    }
    sort_ops(&b);
    store(&b);
    choose_candidates(&b);
    status = first_failure(&b);
    if (status == ME_OK) {
        status = list_candidates(&b);
    }
    if (status == ME_OK) {
        *greedy_out = g;
        g = (me_sac_greedy){.n_ops = 0};
    }
out:
    me_int_set_fini(&b.heads);
    me_int_set_fini(&b.in_place);
    me_int_set_fini(&b.views);
    me_int_set_fini(&b.candidates);
    me_sac_greedy_fini(&g);
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no memory for the operations of %s",
                         stats->fqn);
}

void me_sac_greedy_fini(me_sac_greedy *greedy)
{
    me_int_set_fini(&greedy->recomputed);
    me_int_set_fini(&greedy->stored);
    me_int_set_fini(&greedy->random);
    for (uint32_t i = 0; greedy->groups != NULL && i < greedy->n_ops; i++) {
        me_int_set_fini(&greedy->groups[i]);
    }
    me_free(greedy->groups);
    me_free(greedy->candidates);
    *greedy = (me_sac_greedy){.n_ops = 0};
}
