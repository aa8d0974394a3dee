/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/order_interleaved.h"
#include "parallel/schedule.h"
#include "support/random.h"

#include <string.h>

enum {
    ME_TEST_RANKS = 8,
    ME_TEST_STEPS = 160 /**< chunk micro-batches of a rank at most */
};

/** A random schedule and pipeline; false if they don't fit together. */
static bool make_case(me_random *random, const me_schedule **schedule_out,
                      me_pipeline *pipeline_out)
{
    uint32_t n = 0;
    while (me_schedule_at(n) != NULL) {
        n++;
    }
    const me_schedule *schedule =
        me_schedule_at((uint32_t)me_random_in(random, 0, (int32_t)n - 1));
    const bool is_interleaved = strcmp(schedule->name, "interleaved") == 0;
    const bool is_none = strcmp(schedule->name, "none") == 0;
    *pipeline_out = (me_pipeline){
        .ranks = is_none ? 1 : me_random_in(random, 1, ME_TEST_RANKS),
        .microbatches = me_random_in(random, 1, 40),
        .chunks = is_interleaved ? me_random_in(random, 2, 4) : 1,
        .group_size = me_random_in(random, 0, 20),
    };
    *schedule_out = schedule;
    return me_schedule_check(schedule, pipeline_out, NULL) == ME_OK;
}

static me_actions *make_actions(const me_schedule *schedule,
                                me_pipeline pipeline, int32_t rank)
{
    me_actions *actions = NULL;
    pipeline.rank = rank;
    assert_int_equal(me_actions_create(schedule, &pipeline, NULL, &actions),
                     ME_OK);
    return actions;
}

/** Everything once, forward before backward, phases in their order. */
static const char *check_list(const me_actions *actions,
                              const me_pipeline *pipeline)
{
    bool has_run[2][ME_TEST_STEPS] = {{false}};
    uint8_t phase = ME_ACTION_WARMUP;
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *action = &actions->items[i];
        const int32_t step =
            action->chunk * pipeline->microbatches + action->microbatch;
        const bool is_backward = action->kind == ME_ACTION_BACKWARD;
        if (has_run[is_backward][step]) {
            return "an action is there twice";
        }
        if (is_backward && !has_run[0][step]) {
            return "a backward is before its forward";
        }
        has_run[is_backward][step] = true;
        if (action->phase < phase ||
            (action->phase == ME_ACTION_WARMUP && is_backward) ||
            (action->phase == ME_ACTION_COOLDOWN && !is_backward)) {
            return "an action is in the wrong phase";
        }
        phase = action->phase;
    }
    return actions->count == 2 * pipeline->microbatches * pipeline->chunks
               ? NULL
               : "an action is missing";
}

static const char *check_ranks(me_random *random)
{
    const me_schedule *schedule = NULL;
    me_pipeline pipeline;
    if (!make_case(random, &schedule, &pipeline)) {
        return NULL;
    }
    int32_t held_before = INT32_MAX;
    for (; pipeline.rank < pipeline.ranks; pipeline.rank++) {
        me_actions *actions = make_actions(schedule, pipeline, pipeline.rank);
        const char *wrong = check_list(actions, &pipeline);
        const int32_t held = me_actions_in_flight(actions);
        me_actions_destroy(actions);
        if (wrong != NULL) {
            return wrong;
        }
        if (held != me_schedule_in_flight(schedule, &pipeline)) {
            return "in flight is not what the closed form says";
        }
        if (held > held_before) {
            return "a later rank holds more than the rank before";
        }
        held_before = held;
    }
    return NULL;
}

/** All ranks running together; by virtual stage and micro-batch. */
typedef struct pipeline_run {
    const me_pipeline *pipeline;
    me_actions *actions[ME_TEST_RANKS];
    int32_t at[ME_TEST_RANKS];
    bool is_done[2][ME_TEST_RANKS * ME_TEST_STEPS];
} pipeline_run;

static int32_t run_index(const pipeline_run *run, int32_t stage,
                         const me_action *action)
{
    return stage * run->pipeline->microbatches + action->microbatch;
}

/** Run a rank's next action if what it needs is there. */
static bool advance(pipeline_run *run, int32_t rank)
{
    if (run->at[rank] == run->actions[rank]->count) {
        return false;
    }
    const me_action *action = &run->actions[rank]->items[run->at[rank]];
    const bool is_backward = action->kind == ME_ACTION_BACKWARD;
    const int32_t stages = run->pipeline->ranks * run->pipeline->chunks;
    const int32_t stage = action->chunk * run->pipeline->ranks + rank;
    const int32_t from = is_backward ? stage + 1 : stage - 1;
    if (from >= 0 && from < stages &&
        !run->is_done[is_backward][run_index(run, from, action)]) {
        return false;
    }
    run->is_done[is_backward][run_index(run, stage, action)] = true;
    run->at[rank]++;
    return true;
}

/** No rank waits for what is behind it in another rank's order. */
static const char *check_progress(me_random *random)
{
    const me_schedule *schedule = NULL;
    me_pipeline pipeline;
    if (!make_case(random, &schedule, &pipeline)) {
        return NULL;
    }
    pipeline_run run = {.pipeline = &pipeline};
    for (int32_t rank = 0; rank < pipeline.ranks; rank++) {
        run.actions[rank] = make_actions(schedule, pipeline, rank);
    }
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int32_t rank = 0; rank < pipeline.ranks; rank++) {
            while (advance(&run, rank)) {
                has_moved = true;
            }
        }
    }
    bool is_complete = true;
    for (int32_t rank = 0; rank < pipeline.ranks; rank++) {
        is_complete = is_complete && run.at[rank] == run.actions[rank]->count;
        me_actions_destroy(run.actions[rank]);
    }
    return is_complete ? NULL : "the pipeline stands still";
}

/** A tensor on its way, named by the stage and micro-batch that takes it. */
typedef struct tensor_name {
    int32_t stage;
    int32_t microbatch;
} tensor_name;

/** What a rank sends in one direction, in order. */
static int32_t list_sends(me_pipeline pipeline, bool is_forward,
                          tensor_name *sent)
{
    const int32_t stages = pipeline.ranks * pipeline.chunks;
    int32_t n = 0;
    for (int32_t k = 0; k < me_interleaved_steps(&pipeline); k++) {
        const me_virtual_step run =
            me_interleaved_step(&pipeline, k, is_forward);
        const int32_t stage = run.chunk * pipeline.ranks + pipeline.rank;
        const int32_t to = is_forward ? stage + 1 : stage - 1;
        if (to >= 0 && to < stages) {
            sent[n++] = (tensor_name){to, run.microbatch};
        }
    }
    return n;
}

/**
 * What a rank receives in one direction, in order; *is_late_out: a tensor
 * comes after the step that needs it.
 */
static int32_t list_receives(me_pipeline pipeline, bool is_forward,
                             tensor_name *received, bool *is_late_out)
{
    const int32_t stages = pipeline.ranks * pipeline.chunks;
    int32_t came[8] = {0};
    int32_t used[8] = {0};
    int32_t n = 0;
    for (int32_t k = -1; k < me_interleaved_steps(&pipeline); k++) {
        if (k >= 0) {
            const int32_t chunk =
                me_interleaved_step(&pipeline, k, is_forward).chunk;
            const int32_t stage = chunk * pipeline.ranks + pipeline.rank;
            const bool is_source = stage == (is_forward ? 0 : stages - 1);
            used[chunk] += !is_source;
            *is_late_out = *is_late_out || used[chunk] > came[chunk];
        }
        const me_receive receive =
            me_interleaved_receive(&pipeline, k, is_forward);
        if (receive.is_expected) {
            received[n++] = (tensor_name){
                receive.chunk * pipeline.ranks + pipeline.rank,
                came[receive.chunk]++,
            };
        }
    }
    return n;
}

/** Receives match the sends of the neighbour, in number and order. */
static const char *check_receives(me_random *random)
{
    const me_schedule *schedule = NULL;
    me_pipeline pipeline;
    if (!make_case(random, &schedule, &pipeline) || pipeline.chunks < 2) {
        return NULL;
    }
    const bool is_forward = me_random_in(random, 0, 1) == 1;
    tensor_name sent[ME_TEST_STEPS];
    tensor_name received[ME_TEST_STEPS];
    const int32_t p = pipeline.ranks;
    for (int32_t rank = 0; rank < p; rank++) {
        pipeline.rank = (rank + (is_forward ? p - 1 : 1)) % p;
        const int32_t n_sent = list_sends(pipeline, is_forward, sent);
        pipeline.rank = rank;
        bool is_late = false;
        const int32_t n_received =
            list_receives(pipeline, is_forward, received, &is_late);
        if (is_late) {
            return "a tensor is received after the step that needs it";
        }
        if (n_sent != n_received) {
            return "a rank does not receive as much as is sent to it";
        }
        for (int32_t i = 0; i < n_sent; i++) {
            if (sent[i].stage != received[i].stage ||
                sent[i].microbatch != received[i].microbatch) {
                return "a rank receives in another order than is sent";
            }
        }
    }
    return NULL;
}

static void test_schedule_property__ranks(void **state)
{
    (void)state;
    me_property_run(check_ranks, 5000);
}

static void test_schedule_property__progress(void **state)
{
    (void)state;
    me_property_run(check_progress, 5000);
}

static void test_schedule_property__receives(void **state)
{
    (void)state;
    me_property_run(check_receives, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_property__ranks),
        cmocka_unit_test(test_schedule_property__progress),
        cmocka_unit_test(test_schedule_property__receives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
