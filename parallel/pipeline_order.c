/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/pipeline_order.h"

#include "base/alloc.h"

enum {
    ME_ORDER_STEPS = 1 << 24, /**< chunk micro-batches of all ranks */
    ME_ORDER_RANKS = 1 << 15, /**< each takes memory of its own */
    ME_ORDER_V_RANKS = 1 << 9 /**< a V is worked out as filled, with twice as
                                    many micro-batches on each rank as there are
                                    ranks */
};

me_pipeline_order *me_pipeline_order_new(const me_pipeline *pipeline,
                                         me_placement placement,
                                         int32_t n_stages,
                                         const int32_t *rank_of_stage)
{
    me_pipeline_order *order = me_alloc(1, sizeof *order, "pipeline_order");
    if (order == NULL) {
        return NULL;
    }
    *order = (me_pipeline_order){
        .n_ranks = pipeline->ranks,
        .n_chunks = pipeline->chunks,
        .n_microbatches = pipeline->microbatches,
        .n_stages = n_stages,
        .placement = placement,
    };
    order->ranks = me_alloc((size_t)order->n_ranks, sizeof *order->ranks,
                            "pipeline_order.ranks");
    order->rank_of_stage =
        me_alloc((size_t)n_stages, sizeof *order->rank_of_stage,
                 "pipeline_order.stages");
    if (order->ranks == NULL || order->rank_of_stage == NULL) {
        me_pipeline_order_destroy(order);
        return NULL;
    }
    for (int32_t s = 0; s < n_stages; s++) {
        order->rank_of_stage[s] =
            rank_of_stage != NULL
                ? rank_of_stage[s]
                : me_placement_rank(placement, pipeline->ranks, s);
    }
    return order;
}

void me_pipeline_order_destroy(me_pipeline_order *order)
{
    if (order == NULL) {
        return;
    }
    for (int32_t i = 0; order->ranks != NULL && i < order->n_ranks; i++) {
        me_actions_fini(&order->ranks[i]);
    }
    me_free(order->ranks);
    me_free(order->rank_of_stage);
    me_free(order);
}

void me_pipeline_order_name_stages(me_pipeline_order *order)
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        for (int32_t i = 0; i < order->ranks[rank].count; i++) {
            me_action *action = &order->ranks[rank].items[i];
            action->stage = me_placement_stage(order->placement, order->n_ranks,
                                               rank, action->chunk);
        }
    }
}

static me_status list_ranks(const me_schedule *schedule, me_pipeline pipeline,
                            me_pipeline_order *order)
{
    if (schedule->list_all != NULL) {
        return schedule->list_all(&pipeline, order->ranks);
    }
    me_status status = ME_OK;
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        pipeline.rank = rank;
        schedule->list(&pipeline, &order->ranks[rank]);
        status = status == ME_OK ? order->ranks[rank].status : status;
    }
    return status;
}

me_status me_pipeline_order_create(const me_schedule *schedule,
                                   const me_pipeline *pipeline, me_diag *diag,
                                   me_pipeline_order **order_out)
{
    me_status status = me_schedule_check(schedule, pipeline, diag);
    if (status != ME_OK) {
        return status;
    }
    const int32_t most = schedule->placement == ME_PLACEMENT_V
                             ? ME_ORDER_V_RANKS
                             : ME_ORDER_RANKS;
    if (pipeline->ranks > most) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d ranks are more than the %d that %s is listed for",
                       pipeline->ranks, most, schedule->name);
    }
    const int64_t steps = (int64_t)pipeline->microbatches * pipeline->chunks;
    if (steps > ME_ORDER_STEPS / pipeline->ranks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d ranks x %d chunks x %d micro-batches are more than "
                       "the %d that are listed for all ranks",
                       pipeline->ranks, pipeline->chunks,
                       pipeline->microbatches, ME_ORDER_STEPS);
    }
    me_pipeline_order *order =
        me_pipeline_order_new(pipeline, schedule->placement,
                              pipeline->ranks * pipeline->chunks, NULL);
    status =
        order == NULL ? ME_ERR_NOMEM : list_ranks(schedule, *pipeline, order);
    if (status != ME_OK) {
        me_pipeline_order_destroy(order);
        return me_fail(diag, status, "no host memory for schedule %s",
                       schedule->name);
    }
    me_pipeline_order_name_stages(order);
    *order_out = order;
    return ME_OK;
}

int32_t me_pipeline_order_microbatches(const me_pipeline_order *order,
                                       int32_t stage, int32_t *count_out)
{
    if (order->placement != ME_PLACEMENT_TWO_WAYS) {
        *count_out = order->n_microbatches;
        return 0;
    }
    const int32_t each = order->n_microbatches / 2;
    *count_out = each;
    return stage < order->n_stages / 2 ? 0 : each;
}

static bool has_any(const me_pipeline_order *order,
                    bool (*is_meant)(me_action_kind kind))
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        for (int32_t i = 0; i < order->ranks[rank].count; i++) {
            if (is_meant((me_action_kind)order->ranks[rank].items[i].kind)) {
                return true;
            }
        }
    }
    return false;
}

bool me_pipeline_order_has_transfers(const me_pipeline_order *order)
{
    return has_any(order, me_action_transfers);
}

bool me_pipeline_order_is_even(const me_pipeline_order *order)
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        int32_t n = 0;
        for (int32_t s = 0; s < order->n_stages; s++) {
            n += order->rank_of_stage[s] == rank;
        }
        if (n != order->n_chunks) {
            return false;
        }
    }
    return true;
}

bool me_pipeline_order_has_work_on_parameters(const me_pipeline_order *order)
{
    return has_any(order, me_action_is_of_parameters);
}

me_status me_pipeline_order_copy(const me_pipeline_order *order,
                                 bool only_computes, me_diag *diag,
                                 me_pipeline_order **copy_out)
{
    const me_pipeline pipeline = {.ranks = order->n_ranks,
                                  .microbatches = order->n_microbatches,
                                  .chunks = order->n_chunks};
    me_pipeline_order *copy = me_pipeline_order_new(
        &pipeline, order->placement, order->n_stages, order->rank_of_stage);
    me_status status = copy == NULL ? ME_ERR_NOMEM : ME_OK;
    for (int32_t rank = 0; status == ME_OK && rank < order->n_ranks; rank++) {
        const me_actions *actions = &order->ranks[rank];
        for (int32_t i = 0; i < actions->count; i++) {
            if (!only_computes ||
                me_action_computes((me_action_kind)actions->items[i].kind)) {
                me_actions_push(&copy->ranks[rank], actions->items[i]);
            }
        }
        status = copy->ranks[rank].status;
    }
    if (status != ME_OK) {
        me_pipeline_order_destroy(copy);
        return me_fail(diag, status, "no host memory for the order");
    }
    *copy_out = copy;
    return ME_OK;
}

void me_action_write(const me_action *action, me_str *text)
{
    me_str_printf(text, "%d%s", (int)action->stage,
                  me_action_letter((me_action_kind)action->kind));
    if (!me_action_is_of_parameters((me_action_kind)action->kind)) {
        me_str_printf(text, "%d", (int)action->microbatch);
    }
}

/** What has been seen of a stage's micro-batch. */
enum {
    SEEN_FORWARD = 1,
    SEEN_INPUT = 2,
    SEEN_WEIGHT = 4,
    SEEN_ALL = 7
};

me_status me_action_fail(me_diag *diag, int32_t rank, const me_action *action,
                         const char *what)
{
    me_str text = {0};
    me_action_write(action, &text);
    const me_status status = me_fail(diag, ME_ERR_CONFIG, "rank %d: %s %s",
                                     rank, me_str_text(&text), what);
    me_str_fini(&text);
    return status;
}

/** @return what is wrong with an action after what was seen, or NULL */
static const char *check_seen(const me_action *action, uint8_t *seen)
{
    switch ((me_action_kind)action->kind) {
    case ME_ACTION_FORWARD:
        if ((*seen & SEEN_FORWARD) != 0) {
            return "is there twice";
        }
        *seen |= SEEN_FORWARD;
        return NULL;
    case ME_ACTION_BACKWARD:
    case ME_ACTION_INPUT_GRADIENT:
        if ((*seen & SEEN_INPUT) != 0) {
            return "is a second backward of its micro-batch";
        }
        if ((*seen & SEEN_FORWARD) == 0) {
            return "comes before the forward of its micro-batch";
        }
        *seen |= action->kind == ME_ACTION_BACKWARD ? SEEN_INPUT | SEEN_WEIGHT
                                                    : SEEN_INPUT;
        return NULL;
    case ME_ACTION_WEIGHT_GRADIENT:
        if ((*seen & SEEN_WEIGHT) != 0) {
            return "comes after its weight gradient was made";
        }
        if ((*seen & SEEN_INPUT) == 0) {
            return "comes before the input gradient of its micro-batch";
        }
        *seen |= SEEN_WEIGHT;
        return NULL;
    case ME_ACTION_SEND_FORWARD:
    case ME_ACTION_RECV_FORWARD:
    case ME_ACTION_SEND_BACKWARD:
    case ME_ACTION_RECV_BACKWARD:
    case ME_ACTION_UNSHARD:
    case ME_ACTION_RESHARD:
    case ME_ACTION_REDUCE_GRAD:
    case ME_ACTION_COUNT: break;
    }
    return NULL;
}

/** What must have run before a backward, or before a weight gradient. */
static me_action before(const me_action *action)
{
    me_action needed = *action;
    needed.kind = action->kind == ME_ACTION_WEIGHT_GRADIENT
                      ? ME_ACTION_INPUT_GRADIENT
                      : ME_ACTION_FORWARD;
    return needed;
}

/** Does a rank do it at all? A whole backward makes the input gradient. */
static bool is_listed(const me_actions *actions, const me_action *needed)
{
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        if (a->stage == needed->stage && a->microbatch == needed->microbatch &&
            (a->kind == needed->kind ||
             (needed->kind == ME_ACTION_INPUT_GRADIENT &&
              a->kind == ME_ACTION_BACKWARD))) {
            return true;
        }
    }
    return false;
}

/** An action is wrong where it stands: because it is, or because what it needs
 *  is nowhere. */
static me_status fail_seen(const me_actions *actions, int32_t rank,
                           const me_action *action, const char *wrong,
                           me_diag *diag)
{
    const me_action needed = before(action);
    return action->kind == ME_ACTION_FORWARD || is_listed(actions, &needed)
               ? me_action_fail(diag, rank, action, wrong)
               : me_action_fail(diag, rank, &needed, "is missing");
}

static me_status check_rank(const me_pipeline_order *order, int32_t rank,
                            uint8_t *seen, me_diag *diag)
{
    const me_actions *actions = &order->ranks[rank];
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *action = &actions->items[i];
        if (!me_action_computes((me_action_kind)action->kind)) {
            continue;
        }
        if (action->stage < 0 || action->stage >= order->n_stages ||
            order->rank_of_stage[action->stage] != rank) {
            return me_action_fail(diag, rank, action,
                                  "is of a stage that another rank holds");
        }
        int32_t count = 0;
        const int32_t first =
            me_pipeline_order_microbatches(order, action->stage, &count);
        if (action->microbatch < first || action->microbatch >= first + count) {
            return me_action_fail(
                diag, rank, action,
                "is of a micro-batch that does not pass here");
        }
        uint8_t *of_action =
            &seen[(size_t)action->stage * (size_t)order->n_microbatches +
                  (size_t)action->microbatch];
        const char *wrong = check_seen(action, of_action);
        if (wrong != NULL) {
            return fail_seen(actions, rank, action, wrong, diag);
        }
    }
    return ME_OK;
}

static me_status check_missing(const me_pipeline_order *order,
                               const uint8_t *seen, me_diag *diag)
{
    for (int32_t stage = 0; stage < order->n_stages; stage++) {
        int32_t count = 0;
        const int32_t first =
            me_pipeline_order_microbatches(order, stage, &count);
        for (int32_t i = first; i < first + count; i++) {
            const uint8_t had =
                seen[(size_t)stage * (size_t)order->n_microbatches + (size_t)i];
            if (had != SEEN_ALL) {
                const me_action_kind kind =
                    (had & SEEN_FORWARD) == 0 ? ME_ACTION_FORWARD
                    : (had & SEEN_INPUT) == 0 ? ME_ACTION_BACKWARD
                                              : ME_ACTION_WEIGHT_GRADIENT;
                return me_action_fail(diag, order->rank_of_stage[stage],
                                      &(me_action){.kind = (uint8_t)kind,
                                                   .stage = stage,
                                                   .microbatch = i},
                                      "is missing");
            }
        }
    }
    return ME_OK;
}

me_status me_pipeline_order_check(const me_pipeline_order *order, me_diag *diag)
{
    uint8_t *seen = me_alloc(
        (size_t)order->n_stages * (size_t)order->n_microbatches, 1, "seen");
    if (seen == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the check");
    }
    me_status status = ME_OK;
    for (int32_t rank = 0; status == ME_OK && rank < order->n_ranks; rank++) {
        status = check_rank(order, rank, seen, diag);
    }
    if (status == ME_OK) {
        status = check_missing(order, seen, diag);
    }
    me_free(seen);
    return status;
}
