/* SPDX-License-Identifier: BSD-3-Clause */
// GPipe: all forwards, then all backwards, both from micro-batch 0 on, as
// PyTorch's ScheduleGPipe runs them.

#include "parallel/orders.h"

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    return me_order_check_one_chunk("gpipe", pipeline, diag);
}

static void list(const me_pipeline *pipeline, me_action *actions)
{
    const int32_t m = pipeline->microbatches;
    for (int32_t i = 0; i < m; i++) {
        actions[i] = (me_action){.kind = ME_ACTION_FORWARD,
                                 .phase = ME_ACTION_WARMUP,
                                 .microbatch = i};
        actions[m + i] = (me_action){.kind = ME_ACTION_BACKWARD,
                                     .phase = ME_ACTION_COOLDOWN,
                                     .microbatch = i};
    }
}

static int32_t in_flight(const me_pipeline *pipeline)
{
    return pipeline->microbatches;
}

const me_schedule me_order_gpipe = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .check = check,
    .count = me_order_count,
    .list = list,
    .in_flight = in_flight,
};
