/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/schedule.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "parallel/orders.h"

#include <stddef.h>
#include <string.h>

enum {
    ME_STEPS_MAX = 1 << 29 /**< chunk micro-batches of a rank; twice as many
                                actions still fit an int */
};

#define ME_ORDER_ADDRESS(row) &(row),

static const me_schedule *const schedules[] = {ME_ORDER_LIST(ME_ORDER_ADDRESS)};

const me_schedule *me_schedule_find(const char *name)
{
    const me_schedule *schedule = NULL;
    for (uint32_t i = 0; (schedule = me_schedule_at(i)) != NULL; i++) {
        if (strcmp(schedule->name, name) == 0) {
            return schedule;
        }
    }
    return NULL;
}

const me_schedule *me_schedule_at(uint32_t index)
{
    return index < sizeof schedules / sizeof schedules[0] ? schedules[index]
                                                          : NULL;
}

const char *me_action_letter(me_action_kind kind)
{
#define LETTER_CASE(constant, letter, name)                                    \
    case constant: return letter;
    switch (kind) {
        ME_ACTION_LIST(LETTER_CASE)
    case ME_ACTION_COUNT: break;
    }
#undef LETTER_CASE
    ME_ASSERT(false);
    return "?";
}

int32_t me_order_count(const me_pipeline *pipeline)
{
    return 2 * pipeline->microbatches * pipeline->chunks;
}

me_status me_order_check_one_chunk(const char *name,
                                   const me_pipeline *pipeline, me_diag *diag)
{
    if (pipeline->chunks != 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s has one chunk per rank, not %d", name,
                       pipeline->chunks);
    }
    return ME_OK;
}

me_status me_schedule_check(const me_schedule *schedule,
                            const me_pipeline *pipeline, me_diag *diag)
{
    if (pipeline->ranks < 1 || pipeline->rank < 0 ||
        pipeline->rank >= pipeline->ranks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "no rank %d in a pipeline of %d ranks", pipeline->rank,
                       pipeline->ranks);
    }
    if (pipeline->microbatches < 1 || pipeline->chunks < 1 ||
        pipeline->microbatches > ME_STEPS_MAX / pipeline->chunks ||
        pipeline->ranks > ME_STEPS_MAX / pipeline->chunks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "can't schedule %d micro-batches over %d pipeline "
                       "ranks with %d chunks each",
                       pipeline->microbatches, pipeline->ranks,
                       pipeline->chunks);
    }
    return schedule->check(pipeline, diag);
}

int32_t me_schedule_in_flight(const me_schedule *schedule,
                              const me_pipeline *pipeline)
{
    return schedule->in_flight(pipeline);
}

me_status me_actions_create(const me_schedule *schedule,
                            const me_pipeline *pipeline, me_diag *diag,
                            me_actions **actions_out)
{
    me_status status = me_schedule_check(schedule, pipeline, diag);
    if (status != ME_OK) {
        return status;
    }
    const int32_t count = schedule->count(pipeline);
    me_actions *actions = me_alloc(1, sizeof *actions, "actions");
    if (actions != NULL) {
        actions->items =
            me_alloc((size_t)count, sizeof *actions->items, "actions.items");
    }
    if (actions == NULL || actions->items == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM,
                         "no host memory for a schedule of %d actions", count);
        goto out;
    }
    actions->count = count;
    schedule->list(pipeline, actions->items);
    *actions_out = actions;
    actions = NULL;
out:
    me_actions_destroy(actions);
    return status;
}

void me_actions_destroy(me_actions *actions)
{
    if (actions == NULL) {
        return;
    }
    me_free(actions->items);
    me_free(actions);
}

int32_t me_actions_in_flight(const me_actions *actions)
{
    int32_t held = 0;
    int32_t most = 0;
    for (int32_t i = 0; i < actions->count; i++) {
        switch ((me_action_kind)actions->items[i].kind) {
        case ME_ACTION_FORWARD: held++; break;
        case ME_ACTION_BACKWARD:
        case ME_ACTION_WEIGHT_GRADIENT: held--; break;
        case ME_ACTION_INPUT_GRADIENT:
        case ME_ACTION_COUNT: break;
        }
        most = held > most ? held : most;
    }
    return most;
}
