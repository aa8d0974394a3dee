/* SPDX-License-Identifier: BSD-3-Clause */
// Orders under a limit of memory, after the controllable memory of arXiv
// 2405.15362 and the searched zero-bubble order of arXiv 2401.10241: of several
// orders that hold no more than the limit, the one that ends first when each
// action takes as long as any other; then the one with less idle time within a
// rank. One is a search: at each step a rank runs an input gradient, else a
// forward that it has room for, else a weight gradient; of two chunks the one
// nearer to the end of the model. The others are orders of this folder.

#include "base/alloc.h"
#include "parallel/orders.h"
#include "parallel/timeline.h"

#include <string.h>

enum {
    KIND_F,
    KIND_I,
    KIND_W,
    KINDS,
    ME_AUTO_CELLS = 1 << 22 /**< ranks x micro-batches, searched at most */
};

/** All ranks step by step. */
typedef struct search {
    me_pipeline pipeline;
    me_placement placement;
    int32_t limit; /**< chunk micro-batches that a rank may hold */
    int32_t n_stages;
    int32_t *ends; /**< kind x stage x micro-batch: step + 1, 0: not run */
    int32_t *next; /**< kind x stage: micro-batch */
    int32_t *held; /**< of each rank */
    int32_t step;
} search;

static int32_t *next_of(const search *s, int32_t kind, int32_t stage)
{
    return &s->next[kind * s->n_stages + stage];
}

static int32_t *end_of(const search *s, int32_t kind, int32_t stage,
                       int32_t microbatch)
{
    return &s->ends[(kind * s->n_stages + stage) * s->pipeline.microbatches +
                    microbatch];
}

static bool has_ended(const search *s, int32_t kind, int32_t stage,
                      int32_t microbatch)
{
    const int32_t end = *end_of(s, kind, stage, microbatch);
    return end != 0 && end <= s->step;
}

/** Are the inputs of the stage's next action of a kind there? */
static bool is_ready(const search *s, int32_t kind, int32_t stage)
{
    const int32_t m = *next_of(s, kind, stage);
    if (m == s->pipeline.microbatches) {
        return false;
    }
    switch (kind) {
    case KIND_F: return stage == 0 || has_ended(s, KIND_F, stage - 1, m);
    case KIND_I:
        return has_ended(s, KIND_F, stage, m) &&
               (stage == s->n_stages - 1 || has_ended(s, KIND_I, stage + 1, m));
    default: return has_ended(s, KIND_I, stage, m);
    }
}

static int32_t stage_of(const search *s, int32_t rank, int32_t chunk)
{
    return me_placement_stage(s->placement, s->pipeline.ranks, rank, chunk);
}

/** Is there room for a forward? A micro-batch that enters a rank's first chunk
 *  needs room in the later ones too, or none would ever leave. */
static bool has_room(const search *s, int32_t rank, int32_t chunk)
{
    int32_t promised = 0;
    for (int32_t c = 1; c < s->pipeline.chunks; c++) {
        promised += *next_of(s, KIND_F, stage_of(s, rank, 0)) -
                    *next_of(s, KIND_F, stage_of(s, rank, c));
    }
    const int32_t needed = chunk == 0 ? promised + s->pipeline.chunks : 1;
    return s->held[rank] + needed <= s->limit;
}

static void run_action(search *s, int32_t rank, int32_t chunk, int32_t kind,
                       me_actions *actions)
{
    static const me_action_kind kinds[KINDS] = {
        ME_ACTION_FORWARD, ME_ACTION_INPUT_GRADIENT, ME_ACTION_WEIGHT_GRADIENT};
    const int32_t stage = stage_of(s, rank, chunk);
    const int32_t m = (*next_of(s, kind, stage))++;
    *end_of(s, kind, stage, m) = s->step + 1;
    s->held[rank] += kind == KIND_F ? 1 : kind == KIND_W ? -1 : 0;
    me_order_push(actions, kinds[kind], chunk, m);
}

/** One action of the rank in this step, if any can run. */
static void advance(search *s, int32_t rank, me_actions *actions)
{
    static const int32_t first[KINDS] = {KIND_I, KIND_F, KIND_W};
    for (int i = 0; i < KINDS; i++) {
        for (int32_t c = s->pipeline.chunks - 1; c >= 0; c--) {
            if (is_ready(s, first[i], stage_of(s, rank, c)) &&
                (first[i] != KIND_F || has_room(s, rank, c))) {
                run_action(s, rank, c, first[i], actions);
                return;
            }
        }
    }
}

static me_status run_search(search *s, me_pipeline_order *order)
{
    const int32_t per_rank =
        KINDS * s->pipeline.microbatches * s->pipeline.chunks;
    int32_t n_done = 0;
    for (; n_done < s->pipeline.ranks; s->step++) {
        n_done = 0;
        for (int32_t rank = 0; rank < s->pipeline.ranks; rank++) {
            advance(s, rank, &order->ranks[rank]);
            n_done += order->ranks[rank].count == per_rank;
            if (order->ranks[rank].status != ME_OK) {
                return order->ranks[rank].status;
            }
        }
    }
    return ME_OK;
}

static me_status search_order(const me_pipeline *pipeline,
                              me_placement placement, int32_t limit,
                              me_pipeline_order *order)
{
    search s = {.pipeline = *pipeline,
                .placement = placement,
                .limit = limit,
                .n_stages = pipeline->ranks * pipeline->chunks};
    const size_t per_kind = (size_t)s.n_stages;
    s.ends = me_alloc(per_kind * (size_t)pipeline->microbatches * KINDS,
                      sizeof *s.ends, "auto.ends");
    s.next = me_alloc(per_kind * KINDS, sizeof *s.next, "auto.next");
    s.held = me_alloc((size_t)pipeline->ranks, sizeof *s.held, "auto.held");
    me_status status = ME_ERR_NOMEM;
    if (s.ends != NULL && s.next != NULL && s.held != NULL) {
        status = run_search(&s, order);
    }
    me_free(s.ends);
    me_free(s.next);
    me_free(s.held);
    return status;
}

/** ZB-H1 and ZB-H2, what lies between them, and less: of k micro-batches a
 *  rank holds w + 1 for input gradients and the rest for weight gradients. */
static me_status lagging_order(const me_pipeline *pipeline, int32_t limit,
                               me_pipeline_order *order)
{
    const int32_t p = pipeline->ranks;
    const int32_t k =
        limit < pipeline->microbatches ? limit : pipeline->microbatches;
    me_status status = ME_OK;
    for (int32_t rank = 0; rank < p; rank++) {
        const int32_t ahead = p - 1 - rank;
        int32_t w = ahead + (k > p ? k - p : 0);
        w = w < 2 * ahead ? w : 2 * ahead;
        w = w < k - 1 ? w : k - 1;
        me_order_push_lagging(pipeline, w, k - 1 - w, &order->ranks[rank]);
        status = status == ME_OK ? order->ranks[rank].status : status;
    }
    return status;
}

/** The best order so far. */
typedef struct choice {
    me_pipeline_order *order;
    int64_t makespan;
    int64_t span_bubble;
} choice;

static bool is_within(const me_pipeline_order *order, int32_t limit)
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        if (me_actions_in_flight(&order->ranks[rank]) > limit) {
            return false;
        }
    }
    return true;
}

/** Take over @p order if it is better; else it goes. */
static me_status offer(choice *best, me_pipeline_order *order, int32_t limit)
{
    me_ticks ticks = {.forward = 1, .input_gradient = 1, .weight_gradient = 1};
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *t = NULL;
    me_status status = ME_OK;
    me_pipeline_order_name_stages(order);
    if (is_within(order, limit)) {
        status = me_timeline_create(order, &model, NULL, &t);
        if (status == ME_OK &&
            (best->order == NULL || t->makespan < best->makespan ||
             (t->makespan == best->makespan &&
              t->span_bubble < best->span_bubble))) {
            me_pipeline_order *before = best->order;
            *best = (choice){order, t->makespan, t->span_bubble};
            order = before;
        }
    }
    me_timeline_destroy(t);
    me_pipeline_order_destroy(order);
    return status;
}

/** Offer what one of the two makers made. */
static me_status offer_made(choice *best, const me_pipeline *pipeline,
                            me_placement placement, int32_t limit,
                            bool is_searched)
{
    me_pipeline_order *order = me_pipeline_order_new(
        pipeline, placement, pipeline->ranks * pipeline->chunks, NULL);
    if (order == NULL) {
        return ME_ERR_NOMEM;
    }
    const me_status status =
        is_searched ? search_order(pipeline, placement, limit, order)
                    : lagging_order(pipeline, limit, order);
    if (status != ME_OK) {
        me_pipeline_order_destroy(order);
        return status;
    }
    return offer(best, order, limit);
}

/** The lists of the best order, with phases. */
static void take(choice *best, me_actions *ranks)
{
    for (int32_t rank = 0; rank < best->order->n_ranks; rank++) {
        const me_actions empty = {.items = NULL};
        me_order_mark_phases(&best->order->ranks[rank]);
        ranks[rank] = best->order->ranks[rank];
        best->order->ranks[rank] = empty;
    }
}

static int32_t limit_of(const me_pipeline *pipeline)
{
    return pipeline->memory_limit != 0 ? pipeline->memory_limit
                                       : pipeline->ranks * pipeline->chunks;
}

static me_status check_auto(const char *name, const me_pipeline *pipeline,
                            int32_t chunks, me_diag *diag)
{
    if (limit_of(pipeline) < chunks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s cannot run with room for %d chunk "
                       "micro-batches, at least %d",
                       name, limit_of(pipeline), chunks);
    }
    if (pipeline->microbatches > ME_AUTO_CELLS / pipeline->ranks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s is not searched for %d micro-batches on "
                       "%d pipeline ranks; their product may be %d at most",
                       name, pipeline->microbatches, pipeline->ranks,
                       ME_AUTO_CELLS);
    }
    return me_order_check_chunks(name, pipeline, chunks, diag);
}

static int32_t in_flight(const me_pipeline *pipeline)
{
    const int32_t all = pipeline->microbatches * pipeline->chunks;
    return all < limit_of(pipeline) ? all : limit_of(pipeline);
}

static me_status check_zb(const me_pipeline *pipeline, me_diag *diag)
{
    return check_auto("zb_auto", pipeline, 1, diag);
}

static me_status list_zb(const me_pipeline *pipeline, me_actions *ranks)
{
    choice best = {.order = NULL};
    const int32_t limit = limit_of(pipeline);
    me_status status =
        offer_made(&best, pipeline, ME_PLACEMENT_LOOP, limit, false);
    if (status == ME_OK) {
        status = offer_made(&best, pipeline, ME_PLACEMENT_LOOP, limit, true);
    }
    if (status == ME_OK) {
        take(&best, ranks);
    }
    me_pipeline_order_destroy(best.order);
    return status;
}

const me_schedule me_order_zb_auto = {
    .name = "zb_auto",
    .summary = "zero bubble within a limit of memory",
    .check = check_zb,
    .list_all = list_zb,
    .in_flight = in_flight,
    .is_bound = true,
};

static me_status check_v(const me_pipeline *pipeline, me_diag *diag)
{
    return check_auto("v_auto", pipeline, 2, diag);
}

static me_status list_v(const me_pipeline *pipeline, me_actions *ranks)
{
    static const me_schedule *const rows[] = {&me_order_zbv, &me_order_vhalf,
                                              &me_order_vmin};
    choice best = {.order = NULL};
    const int32_t limit = limit_of(pipeline);
    me_status status = offer_made(&best, pipeline, ME_PLACEMENT_V, limit, true);
    for (size_t i = 0; status == ME_OK && i < sizeof rows / sizeof rows[0];
         i++) {
        me_pipeline_order *order = NULL;
        if (rows[i]->check(pipeline, NULL) == ME_OK) {
            status = me_pipeline_order_create(rows[i], pipeline, NULL, &order);
            if (status == ME_OK) {
                status = offer(&best, order, limit);
            }
        }
    }
    if (status == ME_OK) {
        take(&best, ranks);
    }
    me_pipeline_order_destroy(best.order);
    return status;
}

const me_schedule me_order_v_auto = {
    .name = "v_auto",
    .summary = "two chunks in a V within a limit of memory",
    .placement = ME_PLACEMENT_V,
    .check = check_v,
    .list_all = list_v,
    .in_flight = in_flight,
    .is_bound = true,
};
