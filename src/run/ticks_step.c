/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/ticks_step.h"

#include "base/alloc.h"
#include "report/comparison.h"
#include "run/program.h"

/** Ticks of a timeline in which a transfer takes @p chunks times as long, and
 *  an action as long as if its rank had one chunk. */
static int64_t nanoseconds(int64_t ticks, int32_t chunks)
{
    return (ticks * ME_COMPARE_TICK_NS + chunks / 2) / chunks;
}

/** What an action is in a step; ME_TIME_OTHER: it does not compute. */
static me_time_part part_of(const me_action *action)
{
    switch ((int)action->kind) {
    case ME_ACTION_FORWARD: return ME_TIME_FORWARD;
    case ME_ACTION_BACKWARD:
    case ME_ACTION_INPUT_GRADIENT: return ME_TIME_BACKWARD;
    case ME_ACTION_WEIGHT_GRADIENT: return ME_TIME_WEIGHTS;
    default: return ME_TIME_OTHER;
    }
}

static me_status fill_stage(const me_actions *actions,
                            const me_timeline_rank *course, int32_t chunks,
                            me_time_stage *stage)
{
    stage->spans = me_alloc((size_t)actions->count + 1, sizeof *stage->spans,
                            "ticks.spans");
    if (stage->spans == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *action = &actions->items[i];
        const me_time_part part = part_of(action);
        if (part != ME_TIME_OTHER) {
            stage->spans[stage->n_spans++] = (me_time_span){
                .part = (uint8_t)part,
                .chunk = action->chunk,
                .microbatch = action->microbatch,
                .start_ns = nanoseconds(course->spans[i].start, chunks),
                .end_ns = nanoseconds(course->spans[i].end, chunks),
            };
        }
    }
    stage->busy_ns = nanoseconds(course->busy, chunks);
    stage->compute_ns = stage->busy_ns;
    stage->idle_ns = nanoseconds(course->idle, chunks);
    stage->transfer_ns = stage->idle_ns;
    return ME_OK;
}

static me_status make_step(const me_pipeline_order *order,
                           const me_timeline *timeline, int32_t chunks,
                           me_step_time **step_out)
{
    me_step_time *step = me_alloc(1, sizeof *step, "ticks.step");
    if (step == NULL) {
        return ME_ERR_NOMEM;
    }
    const size_t n = (size_t)timeline->n_ranks;
    step->stages = me_alloc(n, sizeof *step->stages, "ticks.stages");
    step->n_stages = step->stages == NULL ? 0 : timeline->n_ranks;
    me_status status = step->stages == NULL ? ME_ERR_NOMEM : ME_OK;
    for (int32_t i = 0; i < step->n_stages && status == ME_OK; i++) {
        status = fill_stage(&order->ranks[i], &timeline->ranks[i], chunks,
                            &step->stages[i]);
    }
    if (status != ME_OK) {
        me_step_time_destroy(step);
        return status;
    }
    step->step_ns = nanoseconds(timeline->makespan, chunks);
    step->forward_backward_ns = step->step_ns;
    step->bubble_ns = nanoseconds(timeline->bubble, chunks);
    step->span_bubble_ns = nanoseconds(timeline->span_bubble, chunks);
    *step_out = step;
    return ME_OK;
}

me_status me_ticks_step_create(const me_plan *plan, const me_ticks *durations,
                               me_diag *diag, me_step_time **step_out)
{
    const me_pipeline p = me_plan_pipeline(plan, 0);
    // Chunks of one copy: with two directions each is a stage's whole layers.
    const int32_t share = plan->split.chunks;
    const me_pipeline_order *order = plan->order;
    me_pipeline_order *own = NULL;
    me_timeline *timeline = NULL;
    me_status status = ME_OK;
    if (order == NULL) {
        status =
            me_pipeline_order_create(me_program_schedule(plan), &p, diag, &own);
        order = own;
    }
    if (status == ME_OK) {
        me_ticks ticks = *durations;
        ticks.transfer *= share;
        const me_timeline_model model = me_ticks_model(&ticks);
        status = me_timeline_create(order, &model, diag, &timeline);
    }
    if (status == ME_OK &&
        make_step(order, timeline, share, step_out) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for a step");
    }
    me_timeline_destroy(timeline);
    me_pipeline_order_destroy(own);
    return status;
}
