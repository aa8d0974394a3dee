/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/order_interleaved.h"

#include "base/assert.h"
#include "parallel/orders.h"

/** G: micro-batches that a chunk runs in a row. */
static int32_t group_size(const me_pipeline *pipeline)
{
    return pipeline->group_size != 0 ? pipeline->group_size : pipeline->ranks;
}

static me_status check(const me_pipeline *pipeline, me_diag *diag)
{
    const int32_t p = pipeline->ranks;
    const int32_t m = pipeline->microbatches;
    const int32_t G = group_size(pipeline);
    if (p < 2 || pipeline->chunks < 2) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule interleaved needs at least 2 pipeline ranks "
                       "and 2 chunks, not %d and %d",
                       p, pipeline->chunks);
    }
    if (G < p || G > m) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "micro-batch group size = %d must be between the %d "
                       "pipeline ranks and the %d micro-batches",
                       G, p, m);
    }
    if (m % G != 0 && m % G < p) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d micro-batches in groups of %d leave a last group "
                       "of %d, fewer than the %d pipeline ranks",
                       m, G, m % G, p);
    }
    return ME_OK;
}

int32_t me_interleaved_steps(const me_pipeline *pipeline)
{
    return pipeline->microbatches * pipeline->chunks;
}

/** w = min(2 (p - rank - 1) + (C - 1) G, m C), and what is asked for more. */
int32_t me_interleaved_warmup(const me_pipeline *pipeline)
{
    const int32_t ahead = pipeline->ranks - pipeline->rank - 1;
    const int64_t w = 2 * (int64_t)ahead +
                      (int64_t)(pipeline->chunks - 1) * group_size(pipeline) +
                      pipeline->extra_warmup;
    const int32_t steps = me_interleaved_steps(pipeline);
    return w < steps ? (int32_t)w : steps;
}

/**
 * Group after group of micro-batches, in each chunk after chunk, in each its
 * micro-batches; the last group may be shorter. Backwards take the chunks from
 * the last to the first.
 */
me_virtual_step me_interleaved_step(const me_pipeline *pipeline, int32_t step,
                                    bool is_forward)
{
    ME_ASSERT(step >= 0 && step < me_interleaved_steps(pipeline));
    const int32_t C = pipeline->chunks;
    const int32_t G = group_size(pipeline);
    const int32_t group_steps = G * C;
    const int32_t first = step / group_steps * G;
    const int32_t left = pipeline->microbatches - first;
    const int32_t size = left < G ? left : G;
    const int32_t in_group = step % group_steps;
    const int32_t chunk = in_group / size;
    return (me_virtual_step){
        .microbatch = first + in_group % size,
        .chunk = is_forward ? chunk : C - 1 - chunk,
    };
}

/**
 * The leading rank, the first for forwards and the last for backwards, gets
 * what the other end of the pipeline made p - 1 steps ago, for the chunk that
 * follows; nothing follows the last chunk. Other ranks get what their next
 * step runs on.
 */
me_receive me_interleaved_receive(const me_pipeline *pipeline, int32_t step,
                                  bool is_forward)
{
    const me_receive none = {false, 0};
    const int32_t p = pipeline->ranks;
    const bool is_leading = pipeline->rank == (is_forward ? 0 : p - 1);
    const int32_t last_chunk = is_forward ? pipeline->chunks - 1 : 0;
    if (step == me_interleaved_steps(pipeline) - 1) {
        return none;
    }
    if (!is_leading) {
        return (me_receive){
            true, me_interleaved_step(pipeline, step + 1, is_forward).chunk};
    }
    if (step < p - 1) {
        return none;
    }
    const int32_t made =
        me_interleaved_step(pipeline, step - (p - 1), is_forward).chunk;
    if (made == last_chunk) {
        return none;
    }
    return (me_receive){true, is_forward ? made + 1 : made - 1};
}

int32_t me_interleaved_reduced_chunk(const me_pipeline *pipeline, int32_t step)
{
    const int32_t aligned = step - pipeline->rank;
    if (aligned < 0) {
        return -1;
    }
    const me_virtual_step run = me_interleaved_step(pipeline, aligned, false);
    return run.microbatch == pipeline->microbatches - 1 ? run.chunk : -1;
}

static me_action make_action(const me_pipeline *pipeline, int32_t step,
                             bool is_forward, me_action_phase phase)
{
    const me_virtual_step run = me_interleaved_step(pipeline, step, is_forward);
    return (me_action){
        .kind = is_forward ? ME_ACTION_FORWARD : ME_ACTION_BACKWARD,
        .phase = (uint8_t)phase,
        .chunk = run.chunk,
        .microbatch = run.microbatch,
    };
}

static void list(const me_pipeline *pipeline, me_actions *actions)
{
    const int32_t steps = me_interleaved_steps(pipeline);
    const int32_t w = me_interleaved_warmup(pipeline);
    for (int32_t k = 0; k < w; k++) {
        me_actions_push(actions,
                        make_action(pipeline, k, true, ME_ACTION_WARMUP));
    }
    for (int32_t k = 0; k < steps - w; k++) {
        me_actions_push(actions,
                        make_action(pipeline, k + w, true, ME_ACTION_STEADY));
        me_actions_push(actions,
                        make_action(pipeline, k, false, ME_ACTION_STEADY));
    }
    for (int32_t k = steps - w; k < steps; k++) {
        me_actions_push(actions,
                        make_action(pipeline, k, false, ME_ACTION_COOLDOWN));
    }
}

/** min(w + 1, m C). */
static int32_t in_flight(const me_pipeline *pipeline)
{
    const int32_t w = me_interleaved_warmup(pipeline);
    const int32_t steps = me_interleaved_steps(pipeline);
    return w < steps ? w + 1 : steps;
}

const me_schedule me_order_interleaved = {
    .name = "interleaved",
    .summary = "one forward, one backward over several chunks of each rank",
    .check = check,
    .list = list,
    .in_flight = in_flight,
};

static me_pipeline as_torch_groups(const me_pipeline *pipeline)
{
    me_pipeline grouped = *pipeline;
    grouped.group_size = me_order_torch_group(pipeline);
    return grouped;
}

/** Groups may be shorter than the pipeline, but are all alike. */
static me_status check_torch(const me_pipeline *pipeline, me_diag *diag)
{
    const int32_t m = pipeline->microbatches;
    const int32_t groups = m / pipeline->ranks > 1 ? m / pipeline->ranks : 1;
    if (pipeline->ranks < 2 || pipeline->chunks < 2) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule interleaved_torch needs at least 2 pipeline "
                       "ranks and 2 chunks, not %d and %d",
                       pipeline->ranks, pipeline->chunks);
    }
    if (m % groups != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d micro-batches do not divide into the %d groups "
                       "that %d pipeline ranks make of them",
                       m, groups, pipeline->ranks);
    }
    return ME_OK;
}

static void list_torch(const me_pipeline *pipeline, me_actions *actions)
{
    const me_pipeline grouped = as_torch_groups(pipeline);
    list(&grouped, actions);
}

static int32_t in_flight_torch(const me_pipeline *pipeline)
{
    const me_pipeline grouped = as_torch_groups(pipeline);
    return in_flight(&grouped);
}

const me_schedule me_order_interleaved_torch = {
    .name = "interleaved_torch",
    .torch_name = "ScheduleInterleaved1F1B",
    .summary = "interleaved in groups as PyTorch makes them",
    .check = check_torch,
    .list = list_torch,
    .in_flight = in_flight_torch,
};
