/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/order_interleaved.h"
#include "parallel/pipeline_order.h"
#include "parallel/schedule.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    ME_TEST_TEXT = 4096
};

static const me_schedule *find(const char *name)
{
    const me_schedule *schedule = me_schedule_find(name);
    assert_non_null(schedule);
    return schedule;
}

/** The actions of a rank as "F0.3 B0.0 …": chunk and micro-batch. */
static void write_actions(const char *name, const me_pipeline *pipeline,
                          char *text)
{
    me_actions *actions = NULL;
    me_diag diag = {0};
    assert_int_equal(me_actions_create(find(name), pipeline, &diag, &actions),
                     ME_OK);
    size_t length = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *action = &actions->items[i];
        length += (size_t)snprintf(
            text + length, ME_TEST_TEXT - length, "%s%s%d.%d",
            i == 0 ? "" : " ", me_action_letter((me_action_kind)action->kind),
            action->chunk, action->microbatch);
        assert_true(length < ME_TEST_TEXT);
    }
    me_actions_destroy(actions);
}

static void test_schedule__none(void **state)
{
    (void)state;
    char text[ME_TEST_TEXT];
    write_actions("none",
                  &(me_pipeline){.ranks = 1, .microbatches = 3, .chunks = 1},
                  text);
    assert_string_equal(text, "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
}

/** The order of g2_pp2_vpp2, rank 0: m = 4, C = 2, w = 4. */
static void test_schedule__interleaved_by_hand(void **state)
{
    (void)state;
    char text[ME_TEST_TEXT];
    me_pipeline pipeline = {.ranks = 2, .microbatches = 4, .chunks = 2};
    write_actions("interleaved", &pipeline, text);
    assert_string_equal(text, "F0.0 F0.1 F1.0 F1.1 "
                              "F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 "
                              "B1.2 B1.3 B0.2 B0.3");
    assert_int_equal(me_interleaved_warmup(&pipeline), 4);
    pipeline.rank = 1;
    assert_int_equal(me_interleaved_warmup(&pipeline), 2);
}

/** Megatron's own example: p = 2, C = 2, groups of 3, 5 micro-batches. */
static void test_schedule__interleaved_table_with_a_short_group(void **state)
{
    (void)state;
    static const me_virtual_step expected[] = {
        {0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1},
        {2, 1}, {3, 0}, {4, 0}, {3, 1}, {4, 1},
    };
    const me_pipeline pipeline = {
        .ranks = 2, .microbatches = 5, .chunks = 2, .group_size = 3};
    assert_int_equal(me_schedule_check(find("interleaved"), &pipeline, NULL),
                     ME_OK);
    assert_int_equal(me_interleaved_steps(&pipeline), 10);
    for (int32_t k = 0; k < 10; k++) {
        const me_virtual_step forward = me_interleaved_step(&pipeline, k, true);
        const me_virtual_step backward =
            me_interleaved_step(&pipeline, k, false);
        assert_int_equal(forward.microbatch, expected[k].microbatch);
        assert_int_equal(forward.chunk, expected[k].chunk);
        assert_int_equal(backward.microbatch, expected[k].microbatch);
        assert_int_equal(backward.chunk, 1 - expected[k].chunk);
    }
}

/** By hand for g2_pp2_vpp2, from step -1 on; -1: nothing is received. */
static void test_schedule__interleaved_receives(void **state)
{
    (void)state;

    static const struct {
        int32_t rank;
        bool is_forward;
        int32_t chunks[9];
    } cases[] = {
        // What rank 1 made a step ago: two of chunk 0, two of chunk 1, …
        {0, true, {-1, -1, 1, 1, -1, -1, 1, 1, -1}},
        {1, true, {0, 0, 1, 1, 0, 0, 1, 1, -1}},
        {0, false, {1, 1, 0, 0, 1, 1, 0, 0, -1}},
        {1, false, {-1, -1, 0, 0, -1, -1, 0, 0, -1}},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_pipeline pipeline = {
            .ranks = 2, .rank = cases[i].rank, .microbatches = 4, .chunks = 2};
        for (int32_t step = -1; step < 8; step++) {
            const me_receive receive =
                me_interleaved_receive(&pipeline, step, cases[i].is_forward);
            const int32_t expected = cases[i].chunks[step + 1];
            assert_int_equal(receive.is_expected, expected >= 0);
            if (receive.is_expected) {
                assert_int_equal(receive.chunk, expected);
            }
        }
    }
}

/**
 * p = 2, m = 4, C = 3. Groups of 2 micro-batches, so that backward 7, 9, 11 is
 * the last of chunk 2, 1, 0.
 */
static void test_schedule__interleaved_overlaps(void **state)
{
    (void)state;
    static const int32_t reduced[2][12] = {
        {-1, -1, -1, -1, -1, -1, -1, 2, -1, 1, -1, 0},
        {-1, -1, -1, -1, -1, -1, -1, -1, 2, -1, 1, -1},
    };
    me_pipeline pipeline = {.ranks = 2, .microbatches = 4, .chunks = 3};
    for (; pipeline.rank < 2; pipeline.rank++) {
        for (int32_t k = 0; k < 12; k++) {
            assert_int_equal(me_interleaved_reduced_chunk(&pipeline, k),
                             reduced[pipeline.rank][k]);
        }
    }
}

/** Maxima measured on jobs, and those of larger groups. */
static void test_schedule__in_flight_maxima(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        me_pipeline pipeline; /**< rank 0 */
        int32_t maxima[4];
    } cases[] = {
        {"1f1b", {2, 0, 8, 1, 0, 0, 0}, {2, 1}},
        {"1f1b", {4, 0, 8, 1, 0, 0, 0}, {4, 3, 2, 1}},
        {"1f1b", {4, 0, 4, 1, 0, 0, 0}, {4, 3, 2, 1}},
        {"1f1b", {4, 0, 2, 1, 0, 0, 0}, {2, 2, 2, 1}},
        {"interleaved", {2, 0, 4, 2, 0, 0, 0}, {5, 3}},
        {"interleaved", {4, 0, 12, 2, 4, 0, 0}, {11, 9, 7, 5}},
        {"interleaved", {4, 0, 12, 2, 6, 0, 0}, {13, 11, 9, 7}},
        {"interleaved", {4, 0, 12, 2, 8, 0, 0}, {15, 13, 11, 9}},
        {"interleaved", {4, 0, 12, 2, 12, 0, 0}, {19, 17, 15, 13}},
        {"interleaved", {4, 0, 10, 2, 5, 0, 0}, {12, 10, 8, 6}},
        {"interleaved", {2, 0, 2, 2, 0, 0, 0}, {4, 3}},
        {"gpipe", {2, 0, 8, 1, 0, 0, 0}, {8, 8}},
        {"none", {1, 0, 8, 1, 0, 0, 0}, {1}},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline pipeline = cases[i].pipeline;
        for (; pipeline.rank < pipeline.ranks; pipeline.rank++) {
            me_actions *actions = NULL;
            assert_int_equal(me_actions_create(find(cases[i].name), &pipeline,
                                               NULL, &actions),
                             ME_OK);
            const int32_t expected = cases[i].maxima[pipeline.rank];
            assert_int_equal(me_actions_in_flight(actions), expected);
            assert_int_equal(
                me_schedule_in_flight(find(cases[i].name), &pipeline),
                expected);
            me_actions_destroy(actions);
        }
    }
}

static void test_schedule__phases(void **state)
{
    (void)state;
    const me_pipeline pipeline = {
        .ranks = 3, .rank = 1, .microbatches = 3, .chunks = 1};
    static const uint8_t phases[] = {ME_ACTION_WARMUP, ME_ACTION_STEADY,
                                     ME_ACTION_STEADY, ME_ACTION_STEADY,
                                     ME_ACTION_STEADY, ME_ACTION_COOLDOWN};
    me_actions *actions = NULL;
    assert_int_equal(me_actions_create(find("1f1b"), &pipeline, NULL, &actions),
                     ME_OK);
    assert_int_equal(actions->count, 6);
    for (int32_t i = 0; i < actions->count; i++) {
        assert_int_equal(actions->items[i].phase, phases[i]);
    }
    me_actions_destroy(actions);
}

static void test_schedule__table_of_schedules(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (; me_schedule_at(n) != NULL; n++) {
        assert_ptr_equal(me_schedule_find(me_schedule_at(n)->name),
                         me_schedule_at(n));
    }
    assert_int_equal(n, 17);
    assert_null(me_schedule_find("2f2b"));
    static const char *const torch_names[][2] = {
        {"ZBVZeroBubble", "zbv"},
        {"interleaved1f1b", "ScheduleInterleaved1F1B"},
        {"InterleavedZeroBubble", "ScheduleInterleavedZeroBubble"},
        {"DualPipeV", "dualpipev"},
    };
    for (size_t i = 0; i < sizeof torch_names / sizeof torch_names[0]; i++) {
        assert_non_null(me_schedule_find(torch_names[i][0]));
        assert_ptr_equal(me_schedule_find(torch_names[i][0]),
                         me_schedule_find(torch_names[i][1]));
    }
    assert_null(me_schedule_find("Schedule"));
}

static void test_schedule__names_what_does_not_fit(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        me_pipeline pipeline;
        const char *text;
    } cases[] = {
        {"none",
         {2, 0, 4, 1, 0, 0, 0},
         "schedule none has one pipeline rank, not 2"},
        {"1f1b",
         {2, 0, 4, 2, 0, 0, 0},
         "schedule 1f1b has one chunk per rank, not 2"},
        {"gpipe",
         {2, 0, 4, 2, 0, 0, 0},
         "schedule gpipe has one chunk per rank, not 2"},
        {"1f1b", {2, 2, 4, 1, 0, 0, 0}, "no rank 2 in a pipeline of 2 ranks"},
        {"1f1b",
         {2, 0, 0, 1, 0, 0, 0},
         "can't schedule 0 micro-batches over 2 pipeline ranks with 1 chunks "
         "each"},
        {"interleaved",
         {2, 0, INT32_MAX, 2, 0, 0, 0},
         "2147483647 micro-batches over 2 pipeline ranks, 2 chunks on each, "
         "are too many: micro-batches, or ranks, times chunks are at most "
         "536870912"},
        {"interleaved",
         {2, 0, 4, 1, 0, 0, 0},
         "schedule interleaved needs at least 2 pipeline ranks and 2 chunks, "
         "not 2 and 1"},
        {"interleaved",
         {4, 0, 2, 2, 0, 0, 0},
         "micro-batch group size = 4 must be between the 4 pipeline ranks and "
         "the 2 micro-batches"},
        {"interleaved",
         {4, 0, 6, 2, 4, 0, 0},
         "6 micro-batches in groups of 4 leave a last group of 2, fewer than "
         "the 4 pipeline ranks"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        assert_int_equal(
            me_schedule_check(find(cases[i].name), &cases[i].pipeline, &diag),
            ME_ERR_CONFIG);
        assert_string_equal(diag.text, cases[i].text);
    }
}

static void test_schedule__without_memory(void **state)
{
    (void)state;
    const me_pipeline pipeline = {.ranks = 2, .microbatches = 4, .chunks = 1};
    me_actions *actions = NULL;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        me_alloc_fail_at(nth);
        assert_int_equal(
            me_actions_create(find("1f1b"), &pipeline, NULL, &actions),
            ME_ERR_NOMEM);
    }
    me_alloc_fail_at(0);
    assert_null(actions);
}

/* As many ranks as an order is listed for, and one more. */
static void test_schedule__most_ranks(void **state)
{
    (void)state;
    const me_schedule *schedule = me_schedule_find("gpipe");
    me_diag diag = {.status = ME_OK};
    me_pipeline pipeline = {.ranks = 1 << 15, .microbatches = 1, .chunks = 1};
    me_pipeline_order *order = NULL;
    assert_non_null(schedule);
    assert_int_equal(
        me_pipeline_order_create(schedule, &pipeline, &diag, &order), ME_OK);
    me_pipeline_order_destroy(order);
    pipeline.ranks++;
    assert_int_equal(
        me_pipeline_order_create(schedule, &pipeline, &diag, &order),
        ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "more than the 32768"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule__none),
        cmocka_unit_test(test_schedule__interleaved_by_hand),
        cmocka_unit_test(test_schedule__interleaved_table_with_a_short_group),
        cmocka_unit_test(test_schedule__interleaved_receives),
        cmocka_unit_test(test_schedule__interleaved_overlaps),
        cmocka_unit_test(test_schedule__in_flight_maxima),
        cmocka_unit_test(test_schedule__phases),
        cmocka_unit_test(test_schedule__table_of_schedules),
        cmocka_unit_test(test_schedule__names_what_does_not_fit),
        cmocka_unit_test(test_schedule__without_memory),
        cmocka_unit_test(test_schedule__most_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
