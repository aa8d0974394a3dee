/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/megatron_order.h"
#include "parallel/schedule_check.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "parallel/schedule_text.h"
#include "parallel/timeline.h"
#include "support/test.h"

#include <string.h>

static me_pipeline_order *make_order(const char *name, me_pipeline pipeline)
{
    me_pipeline_order *order = NULL;
    me_diag diag = {0};
    if (me_pipeline_order_create(me_schedule_find(name), &pipeline, &diag,
                                 &order) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    return order;
}

static me_timeline *run(const me_pipeline_order *order, me_ticks ticks)
{
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *timeline = NULL;
    assert_int_equal(me_timeline_create(order, &model, NULL, &timeline), ME_OK);
    return timeline;
}

static const me_ticks units = {
    .forward = 1, .input_gradient = 1, .weight_gradient = 1};

/** Peaks and bubbles beside those of facts.tsv; bubbles in ticks. */
static void test_timeline__larger_groups_and_overlaps(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        me_pipeline pipeline;
        bool is_serial;
        int64_t bubble;
        int32_t peaks[8];
    } cases[] = {
        {"interleaved", {4, 0, 12, 2, 4, 0, 0}, false, 9, {11, 9, 7, 5}},
        {"interleaved", {4, 0, 12, 2, 6, 0, 0}, false, 9, {13, 11, 9, 7}},
        {"interleaved", {4, 0, 12, 2, 8, 0, 0}, false, 9, {15, 13, 11, 9}},
        {"interleaved", {4, 0, 12, 2, 12, 0, 0}, false, 9, {19, 17, 15, 13}},
        {"interleaved", {4, 0, 10, 2, 5, 0, 0}, false, 9, {12, 10, 8, 6}},
        {"interleaved", {2, 0, 5, 2, 3, 0, 0}, false, 3, {6, 4}},
        {"interleaved_torch", {4, 0, 10, 2, 0, 0, 0}, false, 9, {12, 10, 8, 6}},
        {"interleaved_torch",
         {8, 0, 4, 2, 0, 0, 0},
         false,
         33,
         {8, 8, 8, 8, 8, 8, 7, 5}},
        {"interleaved", {4, 0, 8, 2, 0, 1, 0}, false, 9, {12, 10, 8, 6}},
        {"interleaved",
         {8, 0, 16, 2, 0, 1, 0},
         false,
         21,
         {24, 22, 20, 18, 16, 14, 12, 10}},
        {"dualpipe", {4, 0, 8, 2, 0, 0, 0}, true, 1, {5, 5, 5, 5}},
        {"dualpipe", {8, 0, 16, 2, 0, 0, 0}, true, 3, {9, 9, 9, 9, 9, 9, 9, 9}},
        {"dualpipev", {2, 0, 8, 2, 0, 0, 0}, true, 1, {5, 5}},
        {"dualpipev", {4, 0, 8, 2, 0, 0, 0}, true, 3, {9, 9, 9, 9}},
        {"dualpipev",
         {8, 0, 16, 2, 0, 0, 0},
         true,
         7,
         {17, 17, 17, 17, 17, 17, 17, 17}},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = make_order(cases[i].name, cases[i].pipeline);
        me_ticks ticks = units;
        ticks.is_serial = cases[i].is_serial;
        me_timeline *timeline = run(order, ticks);
        assert_int_equal(timeline->bubble, cases[i].bubble);
        for (int32_t rank = 0; rank < order->n_ranks; rank++) {
            assert_int_equal(me_actions_in_flight(&order->ranks[rank]),
                             cases[i].peaks[rank]);
        }
        me_timeline_destroy(timeline);
        me_pipeline_order_destroy(order);
    }
}

/** With room for as much as 1f1b holds zb_auto is ZB-H1, with twice as much it
 *  has no bubble within a rank; v_auto is V-Half and V-Min where there is room
 *  for those. Bubbles in ticks. */
static void test_timeline__limits_of_memory(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        me_pipeline pipeline;
        int64_t bubble;
        int64_t span_bubble;
    } cases[] = {
        {"zb_auto", {4, 0, 8, 1, 0, 0, 0}, 3, 3},
        {"zb_auto", {8, 0, 32, 1, 0, 0, 0}, 7, 7},
        {"zb_auto", {4, 0, 8, 1, 0, 0, 8}, 3, 0},
        {"zb_auto", {8, 0, 16, 1, 0, 0, 16}, 7, 0},
        {"zb_auto", {4, 0, 8, 1, 0, 0, 5}, 3, 2},
        {"zb_auto", {4, 0, 8, 1, 0, 0, 1}, 48, 48},
        {"v_auto", {4, 0, 8, 2, 0, 0, 6}, 5, 5},
        {"v_auto", {8, 0, 16, 2, 0, 0, 10}, 17, 17},
        {"v_auto", {4, 0, 8, 2, 0, 0, 4}, 11, 11},
        {"v_auto", {4, 0, 8, 2, 0, 0, 16}, 3, 0},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = make_order(cases[i].name, cases[i].pipeline);
        me_timeline *timeline = run(order, units);
        assert_int_equal(timeline->bubble, cases[i].bubble);
        assert_int_equal(timeline->span_bubble, cases[i].span_bubble);
        me_timeline_destroy(timeline);
        me_pipeline_order_destroy(order);
    }
}

/** Transfers that take a tick, and do not occupy the sender. */
static void test_timeline__transfers(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        me_pipeline pipeline;
        int64_t makespan;
    } cases[] = {
        {"1f1b", {2, 0, 8, 1, 0, 0, 0}, 35},
        {"1f1b", {4, 0, 8, 1, 0, 0, 0}, 49},
        {"1f1b", {8, 0, 16, 1, 0, 0, 0}, 109},
        {"interleaved", {4, 0, 8, 2, 0, 0, 0}, 71},
        {"interleaved", {4, 0, 16, 2, 0, 0, 0}, 119},
        {"interleaved", {8, 0, 8, 2, 0, 0, 0}, 99},
        {"interleaved", {8, 0, 16, 2, 0, 0, 0}, 147},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = make_order(cases[i].name, cases[i].pipeline);
        me_ticks ticks = units;
        ticks.transfer = 1;
        me_timeline *timeline = run(order, ticks);
        assert_int_equal(timeline->makespan, cases[i].makespan);
        me_timeline_destroy(timeline);
        me_pipeline_order_destroy(order);
    }
}

/** Megatron-LM's batches, which are waited for: with a tick for each transfer
 *  they take longer, without any they take as long. */
static void test_timeline__batches_that_block(void **state)
{
    (void)state;

    static const struct {
        me_pipeline pipeline;
        int64_t makespan;
    } cases[] = {
        {{2, 0, 8, 1, 0, 0, 0}, 36},   {{4, 0, 8, 1, 0, 0, 0}, 52},
        {{8, 0, 16, 1, 0, 0, 0}, 112}, {{4, 0, 8, 2, 0, 0, 0}, 82},
        {{4, 0, 16, 2, 0, 0, 0}, 146}, {{8, 0, 8, 2, 0, 0, 0}, 107},
        {{8, 0, 16, 2, 0, 0, 0}, 170},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = NULL;
        assert_int_equal(
            me_megatron_order_create(&cases[i].pipeline, NULL, &order), ME_OK);
        assert_int_equal(me_pipeline_order_check(order, NULL), ME_OK);
        assert_int_equal(me_pipeline_order_check_transfers(order, NULL), ME_OK);
        me_ticks ticks = units;
        ticks.transfer = 1;
        const me_timeline_model model = me_ticks_model(&ticks);
        me_timeline *timeline = NULL;
        assert_int_equal(
            me_timeline_create_blocking(order, &model, NULL, &timeline), ME_OK);
        assert_int_equal(timeline->makespan, cases[i].makespan);
        me_timeline_destroy(timeline);

        ticks.transfer = 0;
        me_timeline *free_of_charge = run(order, ticks);
        assert_int_equal(
            me_timeline_create_blocking(order, &model, NULL, &timeline), ME_OK);
        assert_int_equal(timeline->makespan, free_of_charge->makespan);
        me_timeline_destroy(timeline);
        me_timeline_destroy(free_of_charge);
        me_pipeline_order_destroy(order);
    }
}

/** ZB-H2 and ZB-V have no bubble but for a barrier behind them. */
static void test_timeline__both_bubbles(void **state)
{
    (void)state;
    me_pipeline_order *order = make_order(
        "zbh2", (me_pipeline){.ranks = 4, .microbatches = 8, .chunks = 1});
    me_timeline *timeline = run(order, units);
    assert_int_equal(timeline->bubble, 3);
    assert_int_equal(timeline->span_bubble, 0);
    assert_int_equal(timeline->ranks[0].idle, 3);
    assert_int_equal(timeline->ranks[3].first_start, 3);
    me_timeline_destroy(timeline);
    me_pipeline_order_destroy(order);
}

/** The most of what forwards hold, and input gradients leave to weights. */
static int32_t most_held(const me_actions *actions)
{
    static const int32_t added[] = {[ME_ACTION_FORWARD] = 34,
                                    [ME_ACTION_BACKWARD] = -34,
                                    [ME_ACTION_INPUT_GRADIENT] = 32 - 34,
                                    [ME_ACTION_WEIGHT_GRADIENT] = -32};
    int32_t held = 0;
    int32_t most = 0;
    for (int32_t i = 0; i < actions->count; i++) {
        if (actions->items[i].kind <= ME_ACTION_WEIGHT_GRADIENT) {
            held += added[actions->items[i].kind];
            most = held > most ? held : most;
        }
    }
    return most;
}

/** In units of s b h, an activation being 34 and what W keeps of it 32. */
static void test_timeline__bytes_of_split_backwards(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        int32_t bytes[4];
    } cases[] = {
        {"zbh1", {136, 134, 132, 130}},
        {"1f1b", {136, 102, 68, 34}},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = make_order(
            cases[i].name,
            (me_pipeline){.ranks = 4, .microbatches = 8, .chunks = 1});
        for (int32_t rank = 0; rank < 4; rank++) {
            assert_int_equal(most_held(&order->ranks[rank]),
                             cases[i].bytes[rank]);
        }
        me_pipeline_order_destroy(order);
    }
}

static void test_timeline__names_the_cycle(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n",
         "the order would never end: rank 0 before 0B0 waits for 1B0 of rank "
         "1; rank 1 before 1F1 waits for 0F1 of rank 0"},
        {"0F0,3F0,3B0,0B0\n2F0,1F0,2B0,1B0\n",
         "the order would never end: rank 1 before 2F0 waits for 1F0 of rank "
         "1"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = NULL;
        assert_int_equal(me_schedule_csv_read(
                             cases[i].text, strlen(cases[i].text),
                             &(me_csv_options){.where = NULL}, NULL, &order),
                         ME_OK);
        me_ticks ticks = units;
        const me_timeline_model model = me_ticks_model(&ticks);
        me_timeline *timeline = NULL;
        me_diag diag = {0};
        assert_int_equal(me_timeline_create(order, &model, &diag, &timeline),
                         ME_ERR_CONFIG);
        assert_string_equal(diag.text, cases[i].error);
        me_pipeline_order *lowered = NULL;
        assert_int_equal(me_pipeline_order_lower(order, &diag, &lowered),
                         ME_ERR_CONFIG);
        me_pipeline_order_destroy(order);
    }
}

static void test_timeline__grids(void **state)
{
    (void)state;
    me_pipeline_order *order = make_order(
        "1f1b", (me_pipeline){.ranks = 2, .microbatches = 2, .chunks = 1});
    me_pipeline_order *lowered = NULL;
    assert_int_equal(me_pipeline_order_lower(order, NULL, &lowered), ME_OK);
    me_str text = {0};
    me_schedule_text_steps(lowered, &text);
    assert_string_equal(me_str_text(&text), "        Rank 0   Rank 1  \n"
                                            "Step 0: 0F0      1RECV_F0\n"
                                            "Step 1: 0SEND_F0 1F0     \n"
                                            "Step 2: 0F1      1RECV_F1\n"
                                            "Step 3: 0SEND_F1 1B0     \n"
                                            "Step 4: 0RECV_B0 1SEND_B0\n"
                                            "Step 5: 0B0      1F1     \n"
                                            "Step 6: 0RECV_B1 1B1     \n"
                                            "Step 7: 0B1      1SEND_B1\n");
    me_str_fini(&text);
    me_timeline *timeline = run(order, units);
    assert_int_equal(me_schedule_text_time(order, timeline, 1, &text), 1);
    assert_string_equal(me_str_text(&text),
                        "rank0 F0  F1  .   .   B0  -   .   B1  -\n"
                        "rank1 .   F0  B0  -   F1  B1  -   .   .\n");
    me_str_fini(&text);
    me_timeline_destroy(timeline);
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
}

/** A million ticks do not become a million columns. */
static void test_timeline__grid_of_long_times(void **state)
{
    (void)state;
    me_pipeline_order *order = make_order(
        "zbh1", (me_pipeline){.ranks = 2, .microbatches = 2, .chunks = 1});
    me_timeline *timeline = run(order, (me_ticks){.forward = 1000000,
                                                  .input_gradient = 1000000,
                                                  .weight_gradient = 1000000});
    me_str text = {0};
    const int64_t unit = me_schedule_text_time(order, timeline, 1, &text);
    assert_int_equal(unit, 7000000 / ME_TEXT_COLUMNS_MAX + 1);
    assert_true(text.length < 2 * 8 * ME_TEXT_COLUMNS_MAX);
    me_str_fini(&text);
    me_timeline_destroy(timeline);
    me_pipeline_order_destroy(order);
}

static void test_timeline__reads_durations(void **state)
{
    (void)state;
    me_ticks ticks = units;
    assert_int_equal(me_ticks_parse("F=2,I=3,comm=1,FB=7", NULL, &ticks),
                     ME_OK);
    assert_int_equal(ticks.forward, 2);
    assert_int_equal(ticks.input_gradient, 3);
    assert_int_equal(ticks.weight_gradient, 1);
    assert_int_equal(ticks.overlapped, 7);
    assert_int_equal(ticks.transfer, 1);
    static const char *const wrong[] = {
        "",     "F",     "F=",  "X=1",          "F=-1",
        "F=1,", "F=1.5", "f=1", "F=1000000001", "F=99999999999999999"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(me_ticks_parse(wrong[i], NULL, &ticks), ME_ERR_CONFIG);
    }
}

static void test_timeline__without_memory(void **state)
{
    (void)state;
    me_pipeline_order *order = make_order(
        "1f1b", (me_pipeline){.ranks = 2, .microbatches = 2, .chunks = 1});
    me_ticks ticks = units;
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *timeline = NULL;
    me_pipeline_order *lowered = NULL;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        me_alloc_fail_at(nth);
        assert_int_equal(me_timeline_create(order, &model, NULL, &timeline),
                         ME_ERR_NOMEM);
        me_alloc_fail_at(nth);
        assert_int_equal(me_pipeline_order_lower(order, NULL, &lowered),
                         ME_ERR_NOMEM);
    }
    me_alloc_fail_at(0);
    me_pipeline_order_destroy(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeline__larger_groups_and_overlaps),
        cmocka_unit_test(test_timeline__limits_of_memory),
        cmocka_unit_test(test_timeline__transfers),
        cmocka_unit_test(test_timeline__batches_that_block),
        cmocka_unit_test(test_timeline__both_bubbles),
        cmocka_unit_test(test_timeline__bytes_of_split_backwards),
        cmocka_unit_test(test_timeline__names_the_cycle),
        cmocka_unit_test(test_timeline__grids),
        cmocka_unit_test(test_timeline__grid_of_long_times),
        cmocka_unit_test(test_timeline__reads_durations),
        cmocka_unit_test(test_timeline__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
