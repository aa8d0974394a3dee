/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/order_interleaved.h"
#include "parallel/schedule_check.h"
#include "parallel/schedule_lower.h"
#include "parallel/timeline.h"
#include "support/random.h"

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
    *schedule_out =
        me_schedule_at((uint32_t)me_random_in(random, 0, (int32_t)n - 1));
    *pipeline_out = (me_pipeline){
        .ranks = me_random_in(random, 1, ME_TEST_RANKS),
        .microbatches = me_random_in(random, 1, 40),
        .chunks = me_random_in(random, 1, 4),
        .group_size = me_random_in(random, 0, 20),
        .memory_limit = me_random_in(random, 0, 20),
    };
    return me_schedule_check(*schedule_out, pipeline_out, NULL) == ME_OK;
}

/** A random order of all ranks; NULL if there is none in this case. */
static me_pipeline_order *make_order(me_random *random,
                                     const me_schedule **schedule_out,
                                     me_pipeline *pipeline_out)
{
    me_pipeline_order *order = NULL;
    if (make_case(random, schedule_out, pipeline_out)) {
        assert_int_equal(
            me_pipeline_order_create(*schedule_out, pipeline_out, NULL, &order),
            ME_OK);
    }
    return order;
}

/** Phases in their order, warm-up and cool-down of one direction each. */
static const char *check_phases(const me_actions *actions)
{
    uint8_t phase = ME_ACTION_WARMUP;
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *action = &actions->items[i];
        const bool is_forward = action->kind == ME_ACTION_FORWARD;
        if (action->phase < phase ||
            (action->phase == ME_ACTION_WARMUP && !is_forward) ||
            (action->phase == ME_ACTION_COOLDOWN && is_forward)) {
            return "an action is in the wrong phase";
        }
        phase = action->phase;
    }
    return NULL;
}

/** In flight is what the closed form says; and of one rank's list as of all. */
static const char *check_rank(const me_schedule *schedule,
                              const me_pipeline *pipeline,
                              const me_pipeline_order *order)
{
    const me_actions *listed = &order->ranks[pipeline->rank];
    const int32_t held = me_actions_in_flight(listed);
    const int32_t most = me_schedule_in_flight(schedule, pipeline);
    if (schedule->is_bound ? held > most : held != most) {
        return "in flight is not what the closed form says";
    }
    me_actions *alone = NULL;
    assert_int_equal(me_actions_create(schedule, pipeline, NULL, &alone),
                     ME_OK);
    bool is_same = alone->count == listed->count;
    for (int32_t i = 0; is_same && i < alone->count; i++) {
        is_same = alone->items[i].kind == listed->items[i].kind &&
                  alone->items[i].stage == listed->items[i].stage &&
                  alone->items[i].microbatch == listed->items[i].microbatch;
    }
    me_actions_destroy(alone);
    return is_same ? check_phases(listed)
                   : "a rank's list is not that among all ranks";
}

static const char *check_ranks(me_random *random)
{
    const me_schedule *schedule = NULL;
    me_pipeline pipeline;
    me_pipeline_order *order = make_order(random, &schedule, &pipeline);
    if (order == NULL) {
        return NULL;
    }
    const char *wrong = me_pipeline_order_check(order, NULL) == ME_OK
                            ? NULL
                            : "an action is missing or there twice";
    for (; wrong == NULL && pipeline.rank < pipeline.ranks; pipeline.rank++) {
        wrong = check_rank(schedule, &pipeline, order);
    }
    me_pipeline_order_destroy(order);
    return wrong;
}

/** A rank of a lowered order, run with sends that wait for their receives. */
typedef struct blocking_run {
    const me_pipeline_order *order;
    int32_t at[ME_TEST_RANKS];
} blocking_run;

static const me_action *next_action(const blocking_run *run, int32_t rank)
{
    const me_actions *actions = &run->order->ranks[rank];
    return run->at[rank] < actions->count ? &actions->items[run->at[rank]]
                                          : NULL;
}

/** Is @p other the receive of what @p action sends? */
static bool is_receive_of(const blocking_run *run, const me_action *action,
                          const me_action *other)
{
    const me_pipeline_order *o = run->order;
    const bool is_forward = action->kind == ME_ACTION_SEND_FORWARD;
    const int32_t to =
        is_forward
            ? me_placement_next(o->placement, o->n_stages, action->stage)
            : me_placement_previous(o->placement, o->n_stages, action->stage);
    return other != NULL &&
           other->kind == (is_forward ? ME_ACTION_RECV_FORWARD
                                      : ME_ACTION_RECV_BACKWARD) &&
           other->stage == to && other->microbatch == action->microbatch;
}

/** Compute, or meet a rank that receives. */
static bool advance_blocking(blocking_run *run, int32_t rank)
{
    const me_action *action = next_action(run, rank);
    if (action == NULL) {
        return false;
    }
    if (me_action_computes((me_action_kind)action->kind)) {
        run->at[rank]++;
        return true;
    }
    for (int32_t peer = 0; peer < run->order->n_ranks; peer++) {
        if ((action->kind == ME_ACTION_SEND_FORWARD ||
             action->kind == ME_ACTION_SEND_BACKWARD) &&
            is_receive_of(run, action, next_action(run, peer))) {
            run->at[rank]++;
            run->at[peer]++;
            return true;
        }
    }
    return false;
}

/** Sends and receives match in pairs, and end though both block: which also
 *  says that between two ranks the k-th send is the k-th receive. */
static const char *check_transfers(me_random *random)
{
    const me_schedule *schedule = NULL;
    me_pipeline pipeline;
    me_pipeline_order *order = make_order(random, &schedule, &pipeline);
    if (order == NULL) {
        return NULL;
    }
    me_pipeline_order *lowered = NULL;
    assert_int_equal(me_pipeline_order_lower(order, NULL, &lowered), ME_OK);
    const char *wrong =
        me_pipeline_order_check_transfers(lowered, NULL) == ME_OK
            ? NULL
            : "sends and receives do not match";
    blocking_run run = {.order = lowered};
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int32_t rank = 0; rank < order->n_ranks; rank++) {
            while (advance_blocking(&run, rank)) {
                has_moved = true;
            }
        }
    }
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        if (next_action(&run, rank) != NULL) {
            wrong = "sends that wait for their receives never end";
        }
    }
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
    return wrong;
}

static me_timeline *run_order(const me_pipeline_order *order, me_ticks ticks)
{
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *timeline = NULL;
    assert_int_equal(me_timeline_create(order, &model, NULL, &timeline), ME_OK);
    return timeline;
}

/** Every rank does all of its work, and waiting longer for transfers never
 *  makes a pipeline faster. */
static const char *check_course(me_random *random)
{
    const me_schedule *schedule = NULL;
    me_pipeline pipeline;
    me_pipeline_order *order = make_order(random, &schedule, &pipeline);
    if (order == NULL) {
        return NULL;
    }
    me_ticks ticks = {
        .forward = me_random_in(random, 1, 9),
        .input_gradient = me_random_in(random, 1, 9),
        .weight_gradient = me_random_in(random, 1, 9),
    };
    const int64_t each =
        ticks.forward + ticks.input_gradient + ticks.weight_gradient;
    const int64_t n = schedule->placement == ME_PLACEMENT_TWO_WAYS
                          ? pipeline.microbatches
                          : (int64_t)pipeline.microbatches * pipeline.chunks;
    const char *wrong = NULL;
    int64_t before = 0;
    for (; wrong == NULL && ticks.transfer < 4; ticks.transfer++) {
        me_timeline *timeline = run_order(order, ticks);
        for (int32_t rank = 0; rank < order->n_ranks; rank++) {
            if (timeline->ranks[rank].busy != n * each) {
                wrong = "a rank does not do all of its work";
            }
        }
        if (timeline->makespan < before ||
            timeline->span_bubble > timeline->makespan - n * each) {
            wrong = "a bubble is not what it can be";
        }
        before = timeline->makespan;
        me_timeline_destroy(timeline);
    }
    me_pipeline_order_destroy(order);
    return wrong;
}

/** When a bubble's formula holds. */
typedef enum condition {
    ALWAYS,
    SHORT_WEIGHTS, /**< W <= min(F, I) */
    EVEN_FORWARDS  /**< F = I >= W */
} condition;

/** Bubble of all chunks of a rank, p ranks, C chunks. */
typedef struct bubble {
    const char *name;
    condition holds;
    int64_t (*ticks)(int64_t p, int64_t C, const me_ticks *t);
} bubble;

static int64_t fill_and_drain(int64_t p, int64_t C, const me_ticks *t)
{
    (void)C;
    return (p - 1) * (t->forward + t->input_gradient + t->weight_gradient);
}

static int64_t without_weights(int64_t p, int64_t C, const me_ticks *t)
{
    (void)C;
    return (p - 1) * (t->forward + t->input_gradient - t->weight_gradient);
}

static int64_t forwards_alone(int64_t p, int64_t C, const me_ticks *t)
{
    (void)C;
    const int64_t rest =
        t->forward + t->input_gradient - 2 * t->weight_gradient;
    return (p - 1) * (t->forward > rest ? t->forward : rest);
}

/** F&B + B − 3 W, of an F&B that takes F + B. */
static int64_t overlapped(const me_ticks *t)
{
    return t->forward + 2 * t->input_gradient - t->weight_gradient;
}

static int64_t of_a_v(int64_t p, int64_t C, const me_ticks *t)
{
    (void)C;
    return (p - 1) * overlapped(t);
}

static int64_t of_two_ways(int64_t p, int64_t C, const me_ticks *t)
{
    (void)C;
    return (p / 2 - 1) * overlapped(t);
}

static const bubble bubbles[] = {
    {"gpipe", ALWAYS, fill_and_drain},
    {"1f1b", ALWAYS, fill_and_drain},
    {"interleaved", ALWAYS, fill_and_drain},
    {"looped_bfs", ALWAYS, fill_and_drain},
    {"zbh1", SHORT_WEIGHTS, without_weights},
    {"zbh2", SHORT_WEIGHTS, forwards_alone},
    {"interleaved_zb", SHORT_WEIGHTS, without_weights},
    {"dualpipev", EVEN_FORWARDS, of_a_v},
    {"dualpipe", EVEN_FORWARDS, of_two_ways},
};

static me_ticks make_ticks(me_random *random, condition holds)
{
    me_ticks t = {
        .forward = me_random_in(random, 1, 9),
        .input_gradient = me_random_in(random, 1, 9),
        .weight_gradient = me_random_in(random, 1, 9),
    };
    if (holds == EVEN_FORWARDS) {
        t.input_gradient = t.forward;
    }
    const int64_t least =
        t.forward < t.input_gradient ? t.forward : t.input_gradient;
    if (holds != ALWAYS && t.weight_gradient > least) {
        t.weight_gradient = least;
    }
    return t;
}

static const char *check_bubble(me_random *random)
{
    const int32_t n = (int32_t)(sizeof bubbles / sizeof bubbles[0]);
    const bubble *b = &bubbles[me_random_in(random, 0, n - 1)];
    const me_schedule *schedule = me_schedule_find(b->name);
    const int32_t p = me_random_in(random, 1, 4) * 2;
    const me_pipeline pipeline = {
        .ranks = p,
        .microbatches = p * me_random_in(random, 1, 5),
        .chunks = me_random_in(random, 1, 4),
    };
    if (me_schedule_check(schedule, &pipeline, NULL) != ME_OK) {
        return NULL;
    }
    const me_ticks ticks = make_ticks(random, b->holds);
    me_pipeline_order *order = NULL;
    assert_int_equal(
        me_pipeline_order_create(schedule, &pipeline, NULL, &order), ME_OK);
    me_timeline *timeline = run_order(order, ticks);
    const bool is_right =
        timeline->bubble == b->ticks(p, pipeline.chunks, &ticks);
    me_timeline_destroy(timeline);
    me_pipeline_order_destroy(order);
    return is_right ? NULL : "a bubble is not what its formula says";
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
    if (!make_case(random, &schedule, &pipeline) ||
        schedule != me_schedule_find("interleaved")) {
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
    me_property_run(check_ranks, 1500);
}

static void test_schedule_property__transfers(void **state)
{
    (void)state;
    me_property_run(check_transfers, 600);
}

static void test_schedule_property__course(void **state)
{
    (void)state;
    me_property_run(check_course, 600);
}

static void test_schedule_property__bubbles(void **state)
{
    (void)state;
    me_property_run(check_bubble, 1500);
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
        cmocka_unit_test(test_schedule_property__transfers),
        cmocka_unit_test(test_schedule_property__course),
        cmocka_unit_test(test_schedule_property__bubbles),
        cmocka_unit_test(test_schedule_property__receives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
