/* SPDX-License-Identifier: BSD-3-Clause */
// One forward, one backward, as Megatron-LM core_v0.19.0 runs it
// (forward_backward_pipelining_without_interleaving() of schedules.py).

#include "parallel/orders.h"

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    return me_order_check_chunks("1f1b", pipeline, 1, diag);
}

/** w = min(p - rank - 1, m) forwards before the first backward's pair. */
static int32_t warmup(const me_pipeline *pipeline)
{
    const int32_t ahead = pipeline->ranks - pipeline->rank - 1;
    return ahead < pipeline->microbatches ? ahead : pipeline->microbatches;
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    const int32_t m = pipeline->microbatches;
    const int32_t w = warmup(pipeline);
    for (int32_t i = 0; i < w; i++) {
        me_actions_push(actions, (me_action){.kind = ME_ACTION_FORWARD,
                                             .phase = ME_ACTION_WARMUP,
                                             .microbatch = i});
    }
    for (int32_t i = 0; i < m - w; i++) {
        me_actions_push(actions, (me_action){.kind = ME_ACTION_FORWARD,
                                             .phase = ME_ACTION_STEADY,
                                             .microbatch = w + i});
        me_actions_push(actions, (me_action){.kind = ME_ACTION_BACKWARD,
                                             .phase = ME_ACTION_STEADY,
                                             .microbatch = i});
    }
    for (int32_t i = m - w; i < m; i++) {
        me_actions_push(actions, (me_action){.kind = ME_ACTION_BACKWARD,
                                             .phase = ME_ACTION_COOLDOWN,
                                             .microbatch = i});
    }
}

/** min(p - rank, m). */
static int32_t in_flight(const me_pipeline *pipeline)
{
    const int32_t ahead = pipeline->ranks - pipeline->rank;
    return ahead < pipeline->microbatches ? ahead : pipeline->microbatches;
}

const me_schedule me_order_1f1b = {
    .name = "1f1b",
    .torch_name = "Schedule1F1B",
    .summary = "one forward, one backward after a warm-up",
    .check = check,
    .list = list,
    .in_flight = in_flight,
};
