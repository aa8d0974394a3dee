/* SPDX-License-Identifier: BSD-3-Clause */
// No pipeline: each micro-batch forwards and at once backwards.

#include "parallel/orders.h"

#include <stddef.h>

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    if (pipeline->ranks != 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule none has one pipeline rank, not %d",
                       pipeline->ranks);
    }
    return me_order_check_chunks("none", pipeline, 1, diag);
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    for (int32_t i = 0; i < pipeline->microbatches; i++) {
        me_actions_push(actions, (me_action){.kind = ME_ACTION_FORWARD,
                                             .phase = ME_ACTION_STEADY,
                                             .microbatch = i});
        me_actions_push(actions, (me_action){.kind = ME_ACTION_BACKWARD,
                                             .phase = ME_ACTION_STEADY,
                                             .microbatch = i});
    }
}

static int32_t in_flight(const me_pipeline *pipeline)
{
    (void)pipeline;
    return 1;
}

const me_schedule me_order_none = {
    .name = "none",
    .summary = "no pipeline: forward and backward of each micro-batch in turn",
    .check = check,
    .list = list,
    .in_flight = in_flight,
};
