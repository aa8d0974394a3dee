/* SPDX-License-Identifier: BSD-3-Clause */
// DualPipe (DeepSeek-V3, arXiv 2412.19437) and DualPipeV, its half: forwards
// of one chunk run as one block with backwards of the other. In DualPipe half
// of the micro-batches enter at either end and each rank holds stages of both
// directions; in DualPipeV all enter at rank 0 and pass the ranks twice.

#include "parallel/orders.h"

#include <stddef.h>

/** One rank's order. Side 0 is the chunk whose micro-batches come first. */
typedef struct order {
    me_actions *actions;
    int32_t half;         /**< ranks from an end to the turn */
    int32_t at;           /**< this one among them, 0 at the end */
    int32_t microbatches; /**< of each side */
    int32_t chunk[2];     /**< of each side */
    int32_t first[2];     /**< micro-batch of each side */
    int32_t forwards[2];  /**< of each side so far */
    int32_t backwards[2]; /**< likewise */
    me_action *pending;   /**< weight gradients, owned */
    int32_t n_pending;    /**< put there so far */
    int32_t n_done;       /**< taken from there */
    bool splits;          /**< backwards leave weight gradients behind */
} order;

static me_action forward_of(order *o, int32_t side)
{
    return (me_action){
        .kind = ME_ACTION_FORWARD,
        .chunk = o->chunk[side],
        .microbatch = o->first[side] + o->forwards[side]++,
    };
}

static me_action backward_of(order *o, int32_t side)
{
    return (me_action){
        .kind = ME_ACTION_BACKWARD,
        .chunk = o->chunk[side],
        .microbatch = o->first[side] + o->backwards[side]++,
    };
}

static void push_forward(order *o, int32_t side)
{
    me_actions_push(o->actions, forward_of(o, side));
}

static void push_backward(order *o, int32_t side)
{
    me_action action = backward_of(o, side);
    if (o->splits) {
        action.kind = ME_ACTION_INPUT_GRADIENT;
    }
    me_actions_push(o->actions, action);
    if (o->splits) {
        action.kind = ME_ACTION_WEIGHT_GRADIENT;
        o->pending[o->n_pending++] = action;
    }
}

static void push_weight(order *o)
{
    me_actions_push(o->actions, o->pending[o->n_done++]);
}

/** A forward of one side, in one block with a backward of the other. */
static void push_block(order *o, int32_t side)
{
    me_action forward = forward_of(o, side);
    forward.is_overlapped = true;
    me_actions_push(o->actions, forward);
    me_actions_push(o->actions, backward_of(o, 1 - side));
}

static void fill(order *o)
{
    const int32_t behind = o->half - 1 - o->at;
    for (int32_t i = 0; i < 2 * behind; i++) {
        push_forward(o, 0);
    }
    for (int32_t i = 0; i <= o->at; i++) {
        push_forward(o, 0);
        push_forward(o, 1);
    }
    o->splits = true;
    for (int32_t i = 0; i < behind; i++) {
        push_backward(o, 1);
        push_weight(o);
        push_forward(o, 1);
    }
    o->splits = false;
}

static void overlap(order *o)
{
    const int32_t behind = o->half - 1 - o->at;
    const int32_t rounds = o->microbatches - 2 * o->half + o->at + 1;
    for (int32_t i = 0; i < rounds; i++) {
        if (i == 0 && behind == 0) { // nothing to overlap with at the turn
            push_forward(o, 0);
            push_backward(o, 1);
        } else {
            push_block(o, 0);
        }
        push_block(o, 1);
    }
    for (int32_t i = 0; i < behind; i++) {
        push_backward(o, 1);
        push_block(o, 1);
    }
}

/** From the middle on backwards are split, so that weights fill the bubbles. */
static void drain(order *o)
{
    const int32_t behind = o->half - 1 - o->at;
    const int32_t turn = (o->at + 1) / 2;
    for (int32_t i = 0; i <= o->at; i++) {
        o->splits = o->splits || (i == turn && o->at % 2 == 1);
        push_backward(o, 1);
        o->splits = o->splits || i == turn;
        push_backward(o, 0);
    }
    for (int32_t i = 0; i < behind; i++) {
        push_weight(o);
        push_backward(o, 0);
    }
    while (o->n_done < o->n_pending) {
        push_weight(o);
    }
}

static void list_order(order *o)
{
    o->pending = me_actions_scratch(o->actions, 2 * o->microbatches);
    if (o->pending != NULL) {
        fill(o);
        overlap(o);
        drain(o);
        me_order_mark_phases(o->actions);
    }
    me_actions_scratch_free(o->pending);
}

static me_status check_v(const me_pipeline *pipeline, me_diag *diag)
{
    const me_status status =
        me_order_check_chunks("dualpipev", pipeline, 2, diag);
    return status == ME_OK
               ? me_order_check_microbatches("dualpipev", pipeline,
                                             2 * pipeline->ranks, diag)
               : status;
}

static void list_v(const me_pipeline *pipeline, me_actions *actions)
{
    list_order(&(order){
        .actions = actions,
        .half = pipeline->ranks,
        .at = pipeline->rank,
        .microbatches = pipeline->microbatches,
        .chunk = {0, 1},
    });
}

static int32_t in_flight_v(const me_pipeline *pipeline)
{
    return 2 * pipeline->ranks + 1;
}

const me_schedule me_order_dualpipev = {
    .name = "dualpipev",
    .torch_name = "ScheduleDualPipeV",
    .summary = "forward and backward overlapped, two chunks in a V",
    .placement = ME_PLACEMENT_V,
    .check = check_v,
    .list = list_v,
    .in_flight = in_flight_v,
};

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    me_status status = me_order_check_two_ways("dualpipe", pipeline, diag);
    if (status == ME_OK && pipeline->microbatches % 2 != 0) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "schedule dualpipe needs an even number of "
                         "micro-batches, not %d",
                         pipeline->microbatches);
    }
    return status == ME_OK
               ? me_order_check_microbatches("dualpipe", pipeline,
                                             2 * pipeline->ranks, diag)
               : status;
}

/** Ranks of the second half are nearer to where chunk 1 enters. */
static void list(const me_pipeline *pipeline, me_actions *actions)
{
    const int32_t half = pipeline->ranks / 2;
    const int32_t each = pipeline->microbatches / 2;
    const int32_t near = pipeline->rank < half ? 0 : 1;
    list_order(&(order){
        .actions = actions,
        .half = half,
        .at = near == 0 ? pipeline->rank : pipeline->ranks - 1 - pipeline->rank,
        .microbatches = each,
        .chunk = {near, 1 - near},
        .first = {near * each, (1 - near) * each},
    });
}

static int32_t in_flight(const me_pipeline *pipeline)
{
    return pipeline->ranks + 1;
}

const me_schedule me_order_dualpipe = {
    .name = "dualpipe",
    .summary = "forward and backward overlapped, two directions",
    .placement = ME_PLACEMENT_TWO_WAYS,
    .check = check,
    .list = list,
    .in_flight = in_flight,
};
