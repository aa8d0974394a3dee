/* SPDX-License-Identifier: BSD-3-Clause */
// Zero bubble with one chunk a rank (Qi et al., arXiv 2401.10241): weight
// gradients lag behind input gradients. ZB-H1 is what PyTorch's
// ScheduleInterleavedZeroBubble is with one chunk.

#include "parallel/orders.h"

void me_order_push_lagging(const me_pipeline *pipeline, int32_t warmup,
                           int32_t lag, me_actions *actions)
{
    const int32_t m = pipeline->microbatches;
    for (int32_t i = 0; i < warmup; i++) {
        me_order_push(actions, ME_ACTION_FORWARD, 0, i);
    }
    for (int32_t i = 0; i < m; i++) {
        if (warmup + i < m) {
            me_order_push(actions, ME_ACTION_FORWARD, 0, warmup + i);
        }
        me_order_push(actions, ME_ACTION_INPUT_GRADIENT, 0, i);
        if (i >= lag) {
            me_order_push(actions, ME_ACTION_WEIGHT_GRADIENT, 0, i - lag);
        }
    }
    for (int32_t i = m - lag; i < m; i++) {
        me_order_push(actions, ME_ACTION_WEIGHT_GRADIENT, 0, i);
    }
    me_order_mark_phases(actions);
}

static me_status check_h1(const me_pipeline *pipeline, me_diag *diag)
{
    const me_status status = me_order_check_chunks("zbh1", pipeline, 1, diag);
    return status == ME_OK ? me_order_check_microbatches("zbh1", pipeline,
                                                         pipeline->ranks, diag)
                           : status;
}

static void list_h1(const me_pipeline *pipeline, me_actions *actions)
{
    me_order_push_lagging(pipeline, pipeline->ranks - 1 - pipeline->rank,
                          pipeline->rank, actions);
}

static int32_t in_flight_h1(const me_pipeline *pipeline)
{
    return pipeline->ranks;
}

const me_schedule me_order_zbh1 = {
    .name = "zbh1",
    .summary = "zero bubble with the memory of 1f1b",
    .check = check_h1,
    .list = list_h1,
    .in_flight = in_flight_h1,
};

/** With fewer micro-batches its bubble is larger than ZB-H1's. */
static me_status check_h2(const me_pipeline *pipeline, me_diag *diag)
{
    const me_status status = me_order_check_chunks("zbh2", pipeline, 1, diag);
    return status == ME_OK
               ? me_order_check_microbatches("zbh2", pipeline,
                                             2 * pipeline->ranks - 1, diag)
               : status;
}

static void list_h2(const me_pipeline *pipeline, me_actions *actions)
{
    me_order_push_lagging(pipeline, 2 * (pipeline->ranks - 1 - pipeline->rank),
                          2 * pipeline->rank, actions);
}

static int32_t in_flight_h2(const me_pipeline *pipeline)
{
    return 2 * pipeline->ranks - 1;
}

const me_schedule me_order_zbh2 = {
    .name = "zbh2",
    .summary = "zero bubble with twice the memory of 1f1b",
    .check = check_h2,
    .list = list_h2,
    .in_flight = in_flight_h2,
};
