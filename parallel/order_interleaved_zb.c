/* SPDX-License-Identifier: BSD-3-Clause */
// Interleaved zero bubble (PyTorch's ScheduleInterleavedZeroBubble): the order
// of the interleaved schedule with a shorter warm-up, each backward split, and
// weight gradients r chunk operations late on rank r.

#include "parallel/order_interleaved.h"
#include "parallel/orders.h"

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    const int32_t m = pipeline->microbatches;
    if (pipeline->chunks < 2) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule interleaved_zb needs at least 2 chunks per "
                       "rank, not %d",
                       pipeline->chunks);
    }
    const me_status status = me_order_check_microbatches(
        "interleaved_zb", pipeline, pipeline->ranks, diag);
    if (status == ME_OK && m % (m / pipeline->ranks) != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d micro-batches do not divide into the %d groups "
                       "that %d pipeline ranks make of them",
                       m, m / pipeline->ranks, pipeline->ranks);
    }
    return status;
}

/** (C - 1) G + p - 1 - rank; less than all steps. */
static int32_t warmup(const me_pipeline *grouped)
{
    return (grouped->chunks - 1) * grouped->group_size + grouped->ranks - 1 -
           grouped->rank;
}

static void push_step(const me_pipeline *grouped, me_action_kind kind,
                      int32_t step, me_actions *actions)
{
    const me_virtual_step run =
        me_interleaved_step(grouped, step, kind == ME_ACTION_FORWARD);
    me_order_push(actions, kind, run.chunk, run.microbatch);
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    me_pipeline grouped = *pipeline;
    grouped.group_size = me_order_torch_group(pipeline);
    const int32_t steps = me_interleaved_steps(&grouped);
    const int32_t w = warmup(&grouped);
    const int32_t lag = pipeline->rank;
    for (int32_t k = 0; k < w; k++) {
        push_step(&grouped, ME_ACTION_FORWARD, k, actions);
    }
    for (int32_t k = 0; k < steps; k++) {
        if (k + w < steps) {
            push_step(&grouped, ME_ACTION_FORWARD, k + w, actions);
        }
        push_step(&grouped, ME_ACTION_INPUT_GRADIENT, k, actions);
        if (k >= lag) {
            push_step(&grouped, ME_ACTION_WEIGHT_GRADIENT, k - lag, actions);
        }
    }
    for (int32_t k = steps - lag; k < steps; k++) {
        push_step(&grouped, ME_ACTION_WEIGHT_GRADIENT, k, actions);
    }
    me_order_mark_phases(actions);
}

/** On every rank w + 1 forwards and r weight gradients, (C - 1) G + p. */
static int32_t in_flight(const me_pipeline *pipeline)
{
    return (pipeline->chunks - 1) * me_order_torch_group(pipeline) +
           pipeline->ranks;
}

const me_schedule me_order_interleaved_zb = {
    .name = "interleaved_zb",
    .torch_name = "ScheduleInterleavedZeroBubble",
    .summary = "interleaved with late weight gradients",
    .check = check,
    .list = list,
    .in_flight = in_flight,
};
