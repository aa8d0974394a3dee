/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "config/schedule_choice.h"
#include "parallel/schedule.h"
#include "parallel/schedule_csv.h"
#include "parallel/timeline.h"

struct memest_order {
    me_pipeline_order *order; /**< owned */
};

static const me_schedule *at(size_t index)
{
    return index < UINT32_MAX ? me_schedule_at((uint32_t)index) : NULL;
}

const char *memest_schedule_name(size_t index)
{
    const me_schedule *schedule = at(index);
    return schedule == NULL ? NULL : schedule->name;
}

const char *memest_schedule_torch_name(size_t index)
{
    const me_schedule *schedule = at(index);
    return schedule == NULL ? NULL : schedule->torch_name;
}

const char *memest_schedule_summary(size_t index)
{
    const me_schedule *schedule = at(index);
    return schedule == NULL ? NULL : schedule->summary;
}

/** Take over an order that was made, or nothing. */
static memest_status hand_out(me_status status, me_pipeline_order *made,
                              me_diag *diag, memest_order **order_out)
{
    if (status != ME_OK) {
        me_pipeline_order_destroy(made);
        return me_api_status(status);
    }
    memest_order *order = me_alloc(1, sizeof *order, "api.order");
    if (order == NULL) {
        me_pipeline_order_destroy(made);
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory for an order"));
    }
    order->order = made;
    *order_out = order;
    return MEMEST_OK;
}

memest_status memest_order_create(const char *schedule,
                                  const memest_pipeline *pipeline,
                                  memest_order **order_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    memest_pipeline asked;
    const me_schedule *found = NULL;
    me_pipeline_order *made = NULL;
    me_status status = ME_OK;
    if (!me_api_read(pipeline, &asked, sizeof asked)) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "struct_size of the pipeline is too small: begin with "
                         "MEMEST_INIT(memest_pipeline)");
    }
    if (status == ME_OK) {
        status = me_schedule_named("schedule", schedule, diag, &found);
    }
    if (status == ME_OK) {
        me_pipeline p = {
            .ranks = asked.ranks,
            .microbatches = asked.microbatches,
            .chunks = asked.chunks,
            .group_size = asked.group_size,
            .memory_limit = asked.memory_limit,
        };
        p.chunks = me_schedule_chunks(found, &p);
        status = me_pipeline_order_create(found, &p, diag, &made);
    }
    return hand_out(status, made, diag, order_out);
}

memest_status memest_order_read_file(const char *path, memest_order **order_out,
                                     memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_pipeline_order *made = NULL;
    const me_status status =
        me_schedule_file_read(path, ME_CSV_GUESS, diag, &made);
    return hand_out(status, made, diag, order_out);
}

void memest_order_destroy(memest_order *order)
{
    if (order != NULL) {
        me_pipeline_order_destroy(order->order);
        me_free(order);
    }
}

int32_t memest_order_ranks(const memest_order *order)
{
    return order->order->n_ranks;
}

int32_t memest_order_stages(const memest_order *order)
{
    return order->order->n_stages;
}

int32_t memest_order_microbatches(const memest_order *order)
{
    return order->order->n_microbatches;
}

int32_t memest_order_rank_of_stage(const memest_order *order, int32_t stage)
{
    return stage >= 0 && stage < order->order->n_stages
               ? order->order->rank_of_stage[stage]
               : -1;
}

static const me_actions *actions_of(const memest_order *order, int32_t rank)
{
    return rank >= 0 && rank < order->order->n_ranks
               ? &order->order->ranks[rank]
               : NULL;
}

size_t memest_order_n_actions(const memest_order *order, int32_t rank)
{
    const me_actions *actions = actions_of(order, rank);
    return actions == NULL ? 0 : (size_t)actions->count;
}

bool memest_order_action(const memest_order *order, int32_t rank, size_t index,
                         memest_action *action_out)
{
    const me_actions *actions = actions_of(order, rank);
    if (actions == NULL || index >= (size_t)actions->count) {
        return false;
    }
    const me_action *action = &actions->items[index];
    const me_action_kind kind = (me_action_kind)action->kind;
    const memest_action whole = {
        .kind = me_action_letter(kind),
        .stage = action->stage,
        .chunk = action->chunk,
        .microbatch =
            me_action_is_of_parameters(kind) ? -1 : action->microbatch,
        .is_overlapped = action->is_overlapped,
    };
    return me_api_fill(action_out, &whole, sizeof whole);
}

int32_t memest_order_in_flight(const memest_order *order, int32_t rank)
{
    const me_actions *actions = actions_of(order, rank);
    return actions == NULL ? 0 : me_actions_in_flight(actions);
}

memest_status memest_order_run(const memest_order *order, const char *durations,
                               memest_course *course_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_ticks ticks = me_ticks_default();
    me_timeline *timeline = NULL;
    me_status status =
        durations == NULL ? ME_OK : me_ticks_parse(durations, diag, &ticks);
    if (status == ME_OK) {
        const me_timeline_model model = me_ticks_model(&ticks);
        status = me_timeline_create(order->order, &model, diag, &timeline);
    }
    if (status == ME_OK) {
        const memest_course whole = {
            .makespan = timeline->makespan,
            .bubble = timeline->bubble,
        };
        if (!me_api_fill(course_out, &whole, sizeof whole)) {
            status = me_fail(diag, ME_ERR_CONFIG,
                             "struct_size of the course is too small: begin "
                             "with MEMEST_INIT(memest_course)");
        }
    }
    me_timeline_destroy(timeline);
    return me_api_status(status);
}

memest_status memest_order_text(const memest_order *order, char **text_out,
                                memest_error *error)
{
    me_str text = {0};
    me_schedule_csv_write(order->order, &text);
    return me_api_text(ME_OK, &text, me_api_diag(error), text_out, NULL);
}
