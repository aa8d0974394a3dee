/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/schedule_lower.h"

#include "base/alloc.h"

/** Of a stage's micro-batch: what is there, in an order being lowered. */
enum {
    HAS_INPUT = 1,
    HAS_GRADIENT = 2,
    HAS_RUN_FORWARD = 4,
    HAS_RUN_BACKWARD = 8
};

typedef struct lowering {
    const me_pipeline_order *order;
    me_pipeline_order *lowered;
    uint8_t *has; /**< stage x micro-batches */
    int32_t *at;  /**< each rank's next action */
} lowering;

static uint8_t *has_of(const me_pipeline_order *order, uint8_t *has,
                       int32_t stage, int32_t microbatch)
{
    return &has[(size_t)stage * (size_t)order->n_microbatches +
                (size_t)microbatch];
}

/** The stage to which an action's result goes; −1: it ends here. */
static int32_t target(const me_pipeline_order *o, const me_action *action)
{
    switch ((me_action_kind)action->kind) {
    case ME_ACTION_FORWARD:
    case ME_ACTION_SEND_FORWARD:
        return me_placement_next(o->placement, o->n_stages, action->stage);
    case ME_ACTION_BACKWARD:
    case ME_ACTION_INPUT_GRADIENT:
    case ME_ACTION_SEND_BACKWARD:
        return me_placement_previous(o->placement, o->n_stages, action->stage);
    case ME_ACTION_WEIGHT_GRADIENT:
    case ME_ACTION_RECV_FORWARD:
    case ME_ACTION_RECV_BACKWARD:
    case ME_ACTION_UNSHARD:
    case ME_ACTION_RESHARD:
    case ME_ACTION_REDUCE_GRAD:
    case ME_ACTION_COUNT: break;
    }
    return -1;
}

/** What an action needs to be there. */
static uint8_t needs(const me_pipeline_order *o, const me_action *action)
{
    const int32_t s = action->stage;
    switch ((me_action_kind)action->kind) {
    case ME_ACTION_FORWARD:
        return me_placement_previous(o->placement, o->n_stages, s) < 0
                   ? 0
                   : HAS_INPUT;
    case ME_ACTION_BACKWARD:
    case ME_ACTION_INPUT_GRADIENT:
        return me_placement_next(o->placement, o->n_stages, s) < 0
                   ? HAS_RUN_FORWARD
                   : HAS_RUN_FORWARD | HAS_GRADIENT;
    case ME_ACTION_WEIGHT_GRADIENT: return HAS_RUN_BACKWARD;
    case ME_ACTION_SEND_FORWARD: return HAS_RUN_FORWARD;
    case ME_ACTION_SEND_BACKWARD: return HAS_RUN_BACKWARD;
    case ME_ACTION_RECV_FORWARD:
    case ME_ACTION_RECV_BACKWARD:
    case ME_ACTION_UNSHARD:
    case ME_ACTION_RESHARD:
    case ME_ACTION_REDUCE_GRAD:
    case ME_ACTION_COUNT: break;
    }
    return 0;
}

static bool is_ready(const lowering *l, const me_action *action)
{
    const uint8_t needed = needs(l->order, action);
    return needed == 0 ||
           (*has_of(l->order, l->has, action->stage, action->microbatch) &
            needed) == needed;
}

/** Send what an action made, and receive it where it is needed. */
static void hand_on(lowering *l, const me_action *action)
{
    const me_pipeline_order *o = l->order;
    const bool is_forward = action->kind == ME_ACTION_FORWARD;
    if (me_action_computes((me_action_kind)action->kind)) {
        *has_of(o, l->has, action->stage, action->microbatch) |=
            is_forward ? HAS_RUN_FORWARD : HAS_RUN_BACKWARD;
    }
    const int32_t to = target(o, action);
    if (to < 0) {
        return;
    }
    *has_of(o, l->has, to, action->microbatch) |=
        is_forward ? HAS_INPUT : HAS_GRADIENT;
    const int32_t from_rank = o->rank_of_stage[action->stage];
    const int32_t to_rank = o->rank_of_stage[to];
    if (from_rank == to_rank) {
        return;
    }
    me_action transfer = *action;
    transfer.is_overlapped = false;
    transfer.kind =
        is_forward ? ME_ACTION_SEND_FORWARD : ME_ACTION_SEND_BACKWARD;
    me_actions_push(&l->lowered->ranks[from_rank], transfer);
    transfer.kind =
        is_forward ? ME_ACTION_RECV_FORWARD : ME_ACTION_RECV_BACKWARD;
    transfer.stage = to;
    me_actions_push(&l->lowered->ranks[to_rank], transfer);
}

/** One action of a rank, or the two of a block. @return did it run? */
static bool advance(lowering *l, int32_t rank)
{
    const me_actions *actions = &l->order->ranks[rank];
    if (l->at[rank] == actions->count) {
        return false;
    }
    const me_action *action = &actions->items[l->at[rank]];
    const int32_t n =
        action->is_overlapped && l->at[rank] + 1 < actions->count ? 2 : 1;
    for (int32_t i = 0; i < n; i++) {
        if (!is_ready(l, &action[i])) {
            return false;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        me_actions_push(&l->lowered->ranks[rank], action[i]);
    }
    for (int32_t i = 0; i < n; i++) {
        hand_on(l, &action[i]);
    }
    l->at[rank] += n;
    return true;
}

static me_status run(lowering *l, me_diag *diag)
{
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int32_t rank = 0; rank < l->order->n_ranks; rank++) {
            has_moved |= advance(l, rank);
        }
    }
    for (int32_t rank = 0; rank < l->order->n_ranks; rank++) {
        const me_actions *actions = &l->order->ranks[rank];
        if (l->at[rank] < actions->count) {
            me_str text = {0};
            me_action_write(&actions->items[l->at[rank]], &text);
            me_fail(diag, ME_ERR_CONFIG,
                    "the order would never end: rank %d waits before %s for "
                    "ever",
                    rank, me_str_text(&text));
            me_str_fini(&text);
            return ME_ERR_CONFIG;
        }
        if (l->lowered->ranks[rank].status != ME_OK) {
            return me_fail(diag, ME_ERR_NOMEM,
                           "no host memory for sends and receives");
        }
    }
    return ME_OK;
}

/** Chunks of received tensors, which were copied from the sender's action. */
static void number_chunks(me_pipeline_order *lowered, const int32_t *chunk_of)
{
    for (int32_t rank = 0; rank < lowered->n_ranks; rank++) {
        for (int32_t i = 0; i < lowered->ranks[rank].count; i++) {
            me_action *action = &lowered->ranks[rank].items[i];
            action->chunk = chunk_of[action->stage];
        }
    }
}

me_status me_pipeline_order_lower(const me_pipeline_order *order, me_diag *diag,
                                  me_pipeline_order **lowered_out)
{
    if (me_pipeline_order_has_transfers(order)) {
        return me_pipeline_order_copy(order, false, diag, lowered_out);
    }
    const me_pipeline pipeline = {.ranks = order->n_ranks,
                                  .microbatches = order->n_microbatches,
                                  .chunks = order->n_chunks};
    lowering l = {.order = order};
    l.lowered = me_pipeline_order_new(&pipeline, order->placement,
                                      order->n_stages, order->rank_of_stage);
    l.has = me_alloc((size_t)order->n_stages * (size_t)order->n_microbatches, 1,
                     "lower.has");
    l.at = me_alloc((size_t)order->n_ranks, sizeof *l.at, "lower.at");
    int32_t *chunk_of =
        me_alloc((size_t)order->n_stages, sizeof *chunk_of, "lower.chunks");
    me_status status = ME_ERR_NOMEM;
    if (l.lowered == NULL || l.has == NULL || l.at == NULL ||
        chunk_of == NULL) {
        me_fail(diag, status, "no host memory for sends and receives");
        goto out;
    }
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        for (int32_t i = 0; i < order->ranks[rank].count; i++) {
            const me_action *action = &order->ranks[rank].items[i];
            chunk_of[action->stage] = action->chunk;
        }
    }
    status = run(&l, diag);
    if (status == ME_OK) {
        number_chunks(l.lowered, chunk_of);
        *lowered_out = l.lowered;
        l.lowered = NULL;
    }
out:
    me_pipeline_order_destroy(l.lowered);
    me_free(l.has);
    me_free(l.at);
    me_free(chunk_of);
    return status;
}
