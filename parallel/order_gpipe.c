/* SPDX-License-Identifier: BSD-3-Clause */
// GPipe: all forwards, then all backwards, both from micro-batch 0 on, as
// PyTorch's ScheduleGPipe runs them.

#include "parallel/orders.h"

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    return me_order_check_chunks("gpipe", pipeline, 1, diag);
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    for (int32_t i = 0; i < pipeline->microbatches; i++) {
        me_order_push(actions, ME_ACTION_FORWARD, 0, i);
    }
    for (int32_t i = 0; i < pipeline->microbatches; i++) {
        me_order_push(actions, ME_ACTION_BACKWARD, 0, i);
    }
    me_order_mark_phases(actions);
}

static int32_t in_flight(const me_pipeline *pipeline)
{
    return pipeline->microbatches;
}

const me_schedule me_order_gpipe = {
    .name = "gpipe",
    .torch_name = "ScheduleGPipe",
    .summary = "all forwards, then all backwards",
    .check = check,
    .list = list,
    .in_flight = in_flight,
};
