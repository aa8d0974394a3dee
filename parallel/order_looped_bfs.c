/* SPDX-License-Identifier: BSD-3-Clause */
// Looped, breadth first (Lamy-Poirier, arXiv 2211.05953; PyTorch's
// ScheduleLoopedBFS): chunk after chunk all forwards, then from the last chunk
// all backwards, from the last micro-batch.

#include "parallel/orders.h"

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    if (pipeline->chunks < 2) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule looped_bfs needs at least 2 chunks per rank, "
                       "not %d",
                       pipeline->chunks);
    }
    return ME_OK;
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    for (int32_t c = 0; c < pipeline->chunks; c++) {
        for (int32_t i = 0; i < pipeline->microbatches; i++) {
            me_order_push(actions, ME_ACTION_FORWARD, c, i);
        }
    }
    for (int32_t c = pipeline->chunks - 1; c >= 0; c--) {
        for (int32_t i = pipeline->microbatches - 1; i >= 0; i--) {
            me_order_push(actions, ME_ACTION_BACKWARD, c, i);
        }
    }
    me_order_mark_phases(actions);
}

static int32_t in_flight(const me_pipeline *pipeline)
{
    return pipeline->microbatches * pipeline->chunks;
}

const me_schedule me_order_looped_bfs = {
    .name = "looped_bfs",
    .torch_name = "ScheduleLoopedBFS",
    .summary = "chunk after chunk all forwards, then all backwards",
    .check = check,
    .list = list,
    .in_flight = in_flight,
};
