/* SPDX-License-Identifier: BSD-3-Clause */
// ZB-V (Qi et al., arXiv 2401.10241; PyTorch's ScheduleZBVZeroBubble): two
// chunks a rank in the shape of a V. Made for as many micro-batches as fill
// it; of fewer, the order is what is left of that.

#include "parallel/orders.h"

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    return me_order_check_chunks("zbv", pipeline, 2, diag);
}

/** Where the order has come to. */
typedef struct order {
    me_actions *actions;
    int32_t microbatches;             /**< there are; later ones are left out */
    int32_t next[ME_ACTION_COUNT][2]; /**< micro-batch, of each chunk */
} order;

static void push(order *o, me_action_kind kind, int32_t chunk)
{
    const int32_t microbatch = o->next[kind][chunk]++;
    if (microbatch < o->microbatches) {
        me_order_push(o->actions, kind, chunk, microbatch);
    }
}

static void push_backward(order *o, int32_t chunk)
{
    push(o, ME_ACTION_INPUT_GRADIENT, chunk);
    push(o, ME_ACTION_WEIGHT_GRADIENT, chunk);
}

static void fill(order *o, int32_t ahead, int32_t rank)
{
    for (int32_t i = 0; i < 2 * ahead - 1; i++) {
        push(o, ME_ACTION_FORWARD, 0);
    }
    for (int32_t i = 0; i < rank; i++) {
        push(o, ME_ACTION_FORWARD, 1);
        push(o, ME_ACTION_FORWARD, 0);
    }
    for (int32_t i = 0; i < ahead; i++) {
        push(o, ME_ACTION_FORWARD, 1);
        push_backward(o, 1);
    }
}

static void drain(order *o, int32_t ahead, int32_t rank, int32_t total)
{
    for (int32_t i = 0; i < rank; i++) {
        push(o, ME_ACTION_INPUT_GRADIENT, 0);
        push(o, ME_ACTION_INPUT_GRADIENT, 1);
    }
    for (int32_t i = 0; i < ahead; i++) {
        push_backward(o, 0);
    }
    for (int32_t chunk = 1; chunk >= 0; chunk--) {
        while (o->next[ME_ACTION_WEIGHT_GRADIENT][chunk] < total) {
            push(o, ME_ACTION_WEIGHT_GRADIENT, chunk);
        }
    }
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    const int32_t ahead = pipeline->ranks - pipeline->rank;
    const int32_t least = 2 * pipeline->ranks - 1;
    const int32_t total =
        pipeline->microbatches > least ? pipeline->microbatches : least;
    order o = {.actions = actions, .microbatches = pipeline->microbatches};
    const int32_t *forwards = o.next[ME_ACTION_FORWARD];
    fill(&o, ahead, pipeline->rank);
    while (forwards[1] < forwards[0] || forwards[0] < total) {
        if (forwards[0] < total) {
            push(&o, ME_ACTION_FORWARD, 0);
        }
        push_backward(&o, 0);
        push(&o, ME_ACTION_FORWARD, 1);
        push_backward(&o, 1);
    }
    drain(&o, ahead, pipeline->rank, total);
    me_order_mark_phases(actions);
}

/** 2 p; of fewer micro-batches than fill the V, at most all. */
static int32_t in_flight(const me_pipeline *pipeline)
{
    const int32_t all = 2 * pipeline->microbatches;
    const int32_t most = 2 * pipeline->ranks;
    return all < most ? all : most;
}

const me_schedule me_order_zbv = {
    .name = "zbv",
    .torch_name = "ScheduleZBVZeroBubble",
    .summary = "zero bubble with two chunks in the shape of a V",
    .placement = ME_PLACEMENT_V,
    .check = check,
    .list = list,
    .in_flight = in_flight,
    .is_bound = true,
};
