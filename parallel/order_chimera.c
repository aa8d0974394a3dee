/* SPDX-License-Identifier: BSD-3-Clause */
// Chimera (Li and Hoefler, arXiv 2107.06925), rebuilt from its published
// makespan and memory: two directions, steps of one forward or backward each.
// At each step a rank runs a backward before a forward; of backwards the
// nearer to the beginning of its chain, of forwards the farther; then the
// micro-batch that entered first, then chain 0.

#include "base/alloc.h"
#include "parallel/orders.h"

#include <stddef.h>

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    const me_status status = me_order_check_two_ways("chimera", pipeline, diag);
    if (status == ME_OK && pipeline->microbatches % pipeline->ranks != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule chimera needs micro-batches that divide by "
                       "the %d pipeline ranks, not %d",
                       pipeline->ranks, pipeline->microbatches);
    }
    return status;
}

/** Steps at which forwards and backwards end, and how far each stage is. */
typedef struct search {
    int32_t ranks;
    int32_t each;     /**< micro-batches of a chain */
    int32_t *ends[2]; /**< of direction, stage x each; 0: not run */
    int32_t *next[2]; /**< of direction, each stage's micro-batch */
    int32_t step;     /**< from 1 on */
} search;

/** Position in its chain. */
static int32_t position(const search *s, int32_t chain, int32_t rank)
{
    return chain == 0 ? rank : s->ranks - 1 - rank;
}

/** Did it end before this step? */
static bool has_ended(const search *s, bool is_backward, int32_t stage,
                      int32_t microbatch)
{
    const int32_t end = s->ends[is_backward][stage * s->each + microbatch];
    return end != 0 && end < s->step;
}

/** The micro-batch that chain @p chain could run on the rank; -1: none. */
static int32_t ready(const search *s, bool is_backward, int32_t chain,
                     int32_t rank)
{
    const int32_t pos = position(s, chain, rank);
    const int32_t stage = chain * s->ranks + pos;
    const int32_t k = s->next[is_backward][stage];
    if (k == s->each) {
        return -1;
    }
    if (!is_backward) {
        const int32_t held = k - s->next[1][stage];
        const bool has_input = pos == 0 || has_ended(s, false, stage - 1, k);
        return has_input && held < s->ranks - pos ? k : -1;
    }
    const bool has_gradient =
        pos == s->ranks - 1 || has_ended(s, true, stage + 1, k);
    return has_gradient && has_ended(s, false, stage, k) ? k : -1;
}

/** Which of the two chains goes first, both being ready. */
static int32_t preferred(const search *s, bool is_backward, int32_t rank,
                         const int32_t *k)
{
    const int32_t a = position(s, 0, rank);
    const int32_t b = position(s, 1, rank);
    if (a != b) {
        return (is_backward ? a < b : a > b) ? 0 : 1;
    }
    return k[0] <= k[1] ? 0 : 1;
}

/** Run one action of the rank in this step, if any can. */
static void advance(search *s, int32_t rank, me_actions *actions)
{
    for (int pass = 0; pass < 2; pass++) {
        const bool is_backward = pass == 0;
        const int32_t k[2] = {ready(s, is_backward, 0, rank),
                              ready(s, is_backward, 1, rank)};
        if (k[0] < 0 && k[1] < 0) {
            continue;
        }
        const int32_t chain = k[1] < 0   ? 0
                              : k[0] < 0 ? 1
                                         : preferred(s, is_backward, rank, k);
        const int32_t stage = chain * s->ranks + position(s, chain, rank);
        s->ends[is_backward][stage * s->each + k[chain]] = s->step;
        s->next[is_backward][stage]++;
        me_order_push(actions,
                      is_backward ? ME_ACTION_BACKWARD : ME_ACTION_FORWARD,
                      chain, chain * s->each + k[chain]);
        return;
    }
}

static me_status list_all(const me_pipeline *pipeline, me_actions *ranks)
{
    const int32_t p = pipeline->ranks;
    const int32_t per_rank = 2 * pipeline->microbatches;
    search s = {.ranks = p, .each = pipeline->microbatches / 2, .step = 1};
    const size_t stages = (size_t)p * 2;
    int32_t *memory =
        me_alloc(stages * ((size_t)s.each + 1) * 2, sizeof *memory, "chimera");
    if (memory == NULL) {
        return ME_ERR_NOMEM;
    }
    s.ends[0] = memory;
    s.ends[1] = s.ends[0] + stages * (size_t)s.each;
    s.next[0] = s.ends[1] + stages * (size_t)s.each;
    s.next[1] = s.next[0] + stages;
    me_status status = ME_OK;
    for (int32_t done = 0; done < p && status == ME_OK; s.step++) {
        done = 0;
        for (int32_t rank = 0; rank < p; rank++) {
            advance(&s, rank, &ranks[rank]);
            done += ranks[rank].count == per_rank;
            status = status == ME_OK ? ranks[rank].status : status;
        }
    }
    for (int32_t rank = 0; rank < p; rank++) {
        me_order_mark_phases(&ranks[rank]);
    }
    me_free(memory);
    return status;
}

/** At most p - position of each chain, and not more than there are. */
static int32_t in_flight(const me_pipeline *pipeline)
{
    return pipeline->ranks;
}

const me_schedule me_order_chimera = {
    .name = "chimera",
    .summary = "two directions with two copies of the model",
    .placement = ME_PLACEMENT_TWO_WAYS,
    .check = check,
    .list_all = list_all,
    .in_flight = in_flight,
    .is_bound = true,
};
