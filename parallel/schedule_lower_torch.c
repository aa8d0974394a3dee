/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/schedule_lower.h"

/* PyTorch 2.11, pipelining/schedules.py: _prepare_schedule_with_comms(). */

/** Stages of a rank that are whole at once (max_active_stages); a block may
 *  add one. */
enum {
    ACTIVE_STAGES = 3
};

/** A rank's list being made. */
typedef struct parameters {
    const me_pipeline_order *order;
    const me_actions *actions;
    me_actions *made;
    bool *is_whole;    /**< of each stage */
    int32_t *n_passed; /**< of each stage: weight gradients so far */
} parameters;

static bool begins_block(const me_actions *actions, int32_t i)
{
    return actions->items[i].is_overlapped && i + 1 < actions->count;
}

static int32_t list_stage(int32_t stage, int32_t *next, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (next[i] == stage) {
            return n;
        }
    }
    next[n] = stage;
    return n + 1;
}

/** next_stage_indices(): what the actions from @p at on compute with. */
static int32_t list_next(const me_actions *actions, int32_t at,
                         int32_t next[ACTIVE_STAGES + 1])
{
    int32_t n = 0;
    for (int32_t i = at; i < actions->count && n < ACTIVE_STAGES; i++) {
        n = list_stage(actions->items[i].stage, next, n);
        if (begins_block(actions, i)) {
            n = list_stage(actions->items[++i].stage, next, n);
        }
    }
    return n;
}

static void push_of_stage(parameters *p, me_action_kind kind, int32_t stage)
{
    me_actions_push(p->made,
                    (me_action){.kind = (uint8_t)kind, .stage = stage});
    if (kind != ME_ACTION_REDUCE_GRAD) {
        p->is_whole[stage] = kind == ME_ACTION_UNSHARD;
    }
}

/** Stages that are not among the next are released: in the order of a Python
 *  set of small numbers. */
static void release(parameters *p, const int32_t *next, int32_t n)
{
    for (int32_t s = 0; s < p->order->n_stages; s++) {
        bool is_next = false;
        for (int32_t i = 0; i < n; i++) {
            is_next = is_next || next[i] == s;
        }
        if (p->is_whole[s] && !is_next) {
            push_of_stage(p, ME_ACTION_RESHARD, s);
        }
    }
}

/** _add_reduce_grad(), of one action. */
static void reduce_after(parameters *p, const me_action *a)
{
    if ((a->kind == ME_ACTION_BACKWARD ||
         a->kind == ME_ACTION_WEIGHT_GRADIENT) &&
        ++p->n_passed[a->stage] == p->order->n_microbatches) {
        push_of_stage(p, ME_ACTION_REDUCE_GRAD, a->stage);
    }
}

/** _add_unshard_reshard() and _add_reduce_grad(), of one rank. */
static void add_to_rank(parameters *p)
{
    const me_actions *actions = p->actions;
    for (int32_t i = 0; i < actions->count;) {
        const int32_t n = begins_block(actions, i) ? 2 : 1;
        int32_t next[ACTIVE_STAGES + 1];
        const int32_t n_next = list_next(actions, i, next);
        release(p, next, n_next);
        for (int32_t k = 0; k < n_next; k++) {
            if (!p->is_whole[next[k]]) {
                push_of_stage(p, ME_ACTION_UNSHARD, next[k]);
            }
        }
        for (int32_t k = 0; k < n; k++) {
            me_actions_push(p->made, actions->items[i + k]);
        }
        for (int32_t k = 0; k < n; k++) {
            reduce_after(p, &actions->items[i + k]);
        }
        i += n;
    }
    release(p, NULL, 0);
}

/** Chunks of the actions that were added. */
static void number_chunks(const me_pipeline_order *order, int32_t rank,
                          int32_t *chunk_of, me_actions *made)
{
    for (int32_t i = 0; i < order->ranks[rank].count; i++) {
        const me_action *a = &order->ranks[rank].items[i];
        chunk_of[a->stage] = a->chunk;
    }
    for (int32_t i = 0; i < made->count; i++) {
        made->items[i].chunk = chunk_of[made->items[i].stage];
    }
}

/** The order with what it does to parameters. @return ME_OK or ME_ERR_NOMEM */
static me_status add_parameters(const me_pipeline_order *order,
                                me_pipeline_order *with)
{
    const size_t n = (size_t)order->n_stages;
    parameters p = {
        .order = order,
        .is_whole = me_alloc(n, sizeof *p.is_whole, "lower.whole"),
        .n_passed = me_alloc(n, sizeof *p.n_passed, "lower.passed"),
    };
    int32_t *chunk_of = me_alloc(n, sizeof *chunk_of, "lower.chunks");
    const bool has_room =
        p.is_whole != NULL && p.n_passed != NULL && chunk_of != NULL;
    me_status status = has_room ? ME_OK : ME_ERR_NOMEM;
    for (int32_t rank = 0; status == ME_OK && rank < order->n_ranks; rank++) {
        p.actions = &order->ranks[rank];
        p.made = &with->ranks[rank];
        add_to_rank(&p);
        status = p.made->status;
        if (status == ME_OK) {
            number_chunks(order, rank, chunk_of, p.made);
        }
    }
    me_free(p.is_whole);
    me_free(p.n_passed);
    me_free(chunk_of);
    return status;
}

me_status me_pipeline_order_lower_torch(const me_pipeline_order *order,
                                        me_diag *diag,
                                        me_pipeline_order **lowered_out)
{
    const me_pipeline pipeline = {.ranks = order->n_ranks,
                                  .microbatches = order->n_microbatches,
                                  .chunks = order->n_chunks};
    me_pipeline_order *with = me_pipeline_order_new(
        &pipeline, order->placement, order->n_stages, order->rank_of_stage);
    me_status status =
        with == NULL ? ME_ERR_NOMEM : add_parameters(order, with);
    status = status == ME_OK ? me_pipeline_order_lower(with, diag, lowered_out)
                             : me_fail(diag, status,
                                       "no host memory for sends and receives");
    me_pipeline_order_destroy(with);
    return status;
}
