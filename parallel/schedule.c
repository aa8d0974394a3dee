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

/** Letters and digits of @p text, small: the next one at *cursor, 0 at the
 *  end. */
static int next_letter(const char **cursor)
{
    while (**cursor == '-' || **cursor == '_') {
        (*cursor)++;
    }
    const int c = (unsigned char)**cursor;
    *cursor += c != '\0';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool is_same_name(const char *a, const char *b)
{
    int letter = 0;
    do {
        letter = next_letter(&a);
        if (letter != next_letter(&b)) {
            return false;
        }
    } while (letter != 0);
    return true;
}

/** PyTorch's class, or what get_schedule_class() and torchtitan call it. */
static bool is_torch_name(const char *torch_name, const char *name)
{
    static const char before[] = "Schedule";
    return torch_name != NULL &&
           (is_same_name(torch_name, name) ||
            (strncmp(torch_name, before, sizeof before - 1) == 0 &&
             is_same_name(torch_name + sizeof before - 1, name)));
}

const me_schedule *me_schedule_find(const char *name)
{
    const me_schedule *schedule = NULL;
    for (uint32_t i = 0; (schedule = me_schedule_at(i)) != NULL; i++) {
        if (is_same_name(schedule->name, name) ||
            is_torch_name(schedule->torch_name, name)) {
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

void me_order_push(me_actions *actions, me_action_kind kind, int32_t chunk,
                   int32_t microbatch)
{
    me_actions_push(actions, (me_action){.kind = (uint8_t)kind,
                                         .chunk = chunk,
                                         .microbatch = microbatch});
}

void me_order_mark_phases(me_actions *actions)
{
    int32_t last_forward = -1;
    for (int32_t i = 0; i < actions->count; i++) {
        if (actions->items[i].kind == ME_ACTION_FORWARD) {
            last_forward = i;
        }
    }
    bool is_warmup = true;
    for (int32_t i = 0; i < actions->count; i++) {
        me_action *action = &actions->items[i];
        is_warmup = is_warmup && action->kind == ME_ACTION_FORWARD;
        action->phase = is_warmup          ? ME_ACTION_WARMUP
                        : i > last_forward ? ME_ACTION_COOLDOWN
                                           : ME_ACTION_STEADY;
    }
}

me_status me_order_check_chunks(const char *name, const me_pipeline *pipeline,
                                int32_t chunks, me_diag *diag)
{
    static const char *const numbers[] = {"no", "one", "two"};
    if (pipeline->chunks != chunks) {
        return me_fail(
            diag, ME_ERR_CONFIG, "schedule %s has %s chunk%s per rank, not %d",
            name, numbers[chunks], chunks == 1 ? "" : "s", pipeline->chunks);
    }
    return ME_OK;
}

me_status me_order_check_microbatches(const char *name,
                                      const me_pipeline *pipeline,
                                      int32_t least, me_diag *diag)
{
    if (pipeline->microbatches < least) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s needs at least %d micro-batches on %d "
                       "pipeline ranks, not %d",
                       name, least, pipeline->ranks, pipeline->microbatches);
    }
    return ME_OK;
}

me_status me_order_check_two_ways(const char *name, const me_pipeline *pipeline,
                                  me_diag *diag)
{
    if (pipeline->ranks % 2 != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "schedule %s needs an even number of pipeline ranks, "
                       "not %d",
                       name, pipeline->ranks);
    }
    return me_order_check_chunks(name, pipeline, 2, diag);
}

int32_t me_order_torch_group(const me_pipeline *pipeline)
{
    const int32_t groups = pipeline->microbatches / pipeline->ranks;
    return groups > 1 ? pipeline->microbatches / groups
                      : pipeline->microbatches;
}

/** Does a rank have at most ME_STEPS_MAX chunk micro-batches? */
static bool is_in_bounds(const me_pipeline *pipeline)
{
    return pipeline->microbatches <= ME_STEPS_MAX / pipeline->chunks &&
           pipeline->ranks <= ME_STEPS_MAX / pipeline->chunks;
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
    if (pipeline->microbatches < 1 || pipeline->chunks < 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "can't schedule %d micro-batches over %d pipeline "
                       "ranks with %d chunks each",
                       pipeline->microbatches, pipeline->ranks,
                       pipeline->chunks);
    }
    if (!is_in_bounds(pipeline)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d micro-batches over %d pipeline ranks, %d chunk%s on "
                       "each, are too many: micro-batches, or ranks, times "
                       "chunks are at most %d",
                       pipeline->microbatches, pipeline->ranks,
                       pipeline->chunks, pipeline->chunks == 1 ? "" : "s",
                       ME_STEPS_MAX);
    }
    return schedule->check(pipeline, diag);
}

int32_t me_schedule_chunks(const me_schedule *schedule,
                           const me_pipeline *pipeline)
{
    if (pipeline->chunks != 0) {
        return pipeline->chunks;
    }
    me_pipeline p = *pipeline;
    p.chunks = 1;
    return !is_in_bounds(&p) || me_schedule_check(schedule, &p, NULL) == ME_OK
               ? 1
               : 2;
}

int32_t me_schedule_in_flight(const me_schedule *schedule,
                              const me_pipeline *pipeline)
{
    return schedule->in_flight(pipeline);
}

void me_actions_push(me_actions *actions, me_action action)
{
    if (actions->status != ME_OK) {
        return;
    }
    if ((uint32_t)actions->count == actions->capacity) {
        me_action *larger =
            me_grow(actions->items, (uint32_t)actions->count,
                    &actions->capacity, sizeof *larger, "actions.items");
        if (larger == NULL) {
            actions->status = ME_ERR_NOMEM;
            return;
        }
        actions->items = larger;
    }
    actions->items[actions->count++] = action;
}

me_action *me_actions_scratch(me_actions *actions, int32_t count)
{
    me_action *scratch =
        me_alloc((size_t)count, sizeof *scratch, "actions.scratch");
    if (scratch == NULL) {
        actions->status = ME_ERR_NOMEM;
    }
    return scratch;
}

void me_actions_scratch_free(me_action *scratch)
{
    me_free(scratch);
}

void me_actions_fini(me_actions *actions)
{
    me_free(actions->items);
    *actions = (me_actions){.items = NULL};
}

/** One rank's list from a row that makes all. */
static me_status list_one_of_all(const me_schedule *schedule,
                                 const me_pipeline *pipeline,
                                 me_actions *actions)
{
    const size_t n = (size_t)pipeline->ranks;
    me_actions *all = me_alloc(n, sizeof *all, "actions.all");
    if (all == NULL) {
        return ME_ERR_NOMEM;
    }
    const me_status status = schedule->list_all(pipeline, all);
    const me_actions other = *actions;
    *actions = all[pipeline->rank];
    all[pipeline->rank] = other;
    for (size_t i = 0; i < n; i++) {
        me_actions_fini(&all[i]);
    }
    me_free(all);
    return status;
}

static void name_stages(const me_schedule *schedule,
                        const me_pipeline *pipeline, me_actions *actions)
{
    for (int32_t i = 0; i < actions->count; i++) {
        me_action *action = &actions->items[i];
        action->stage = me_placement_stage(schedule->placement, pipeline->ranks,
                                           pipeline->rank, action->chunk);
    }
}

me_status me_actions_create(const me_schedule *schedule,
                            const me_pipeline *pipeline, me_diag *diag,
                            me_actions **actions_out)
{
    me_status status = me_schedule_check(schedule, pipeline, diag);
    if (status != ME_OK) {
        return status;
    }
    me_actions *actions = me_alloc(1, sizeof *actions, "actions");
    if (actions == NULL) {
        status = ME_ERR_NOMEM;
    } else if (schedule->list_all != NULL) {
        status = list_one_of_all(schedule, pipeline, actions);
    } else {
        schedule->list(pipeline, actions);
        status = actions->status;
    }
    if (status != ME_OK) {
        status = me_fail(diag, status, "no host memory for schedule %s",
                         schedule->name);
        goto out;
    }
    name_stages(schedule, pipeline, actions);
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
    me_actions_fini(actions);
    me_free(actions);
}
