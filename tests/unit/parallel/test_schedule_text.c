/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawings of orders are no longer than a grid that is worth looking at. */
#include "parallel/rank_stages.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_text.h"
#include "support/test.h"

#include <string.h>

/** Stages 0, 1, 2, … with a rank each, and all others on the last rank. */
static me_pipeline_order *read_steep(int32_t ranks, int32_t stages)
{
    me_str file = {0};
    for (int32_t s = 0; s < ranks - 1; s++) {
        me_str_printf(&file, "%dF0,%dB0\n", s, s);
    }
    for (int32_t s = ranks - 1; s < stages; s++) {
        me_str_printf(&file, "%dF0,", s);
    }
    for (int32_t s = stages; s >= ranks; s--) {
        me_str_printf(&file, "%dB0%s", s - 1, s == ranks ? "\n" : ",");
    }
    me_pipeline_order *order = NULL;
    me_diag diag = {.status = ME_OK};
    const me_csv_options options = {.dialect = ME_CSV_TODAY};
    if (me_schedule_csv_read(me_str_text(&file), file.length, &options, &diag,
                             &order) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    me_str_fini(&file);
    return order;
}

/* A grid of 1,024 ranks and 2,050 steps would be empty but for 4,096 cells. */
static void test_schedule_text__lists_what_is_mostly_empty(void **state)
{
    (void)state;
    static const char head[] =
        "a line a rank: most of 1024 ranks have far fewer than the 2050 steps "
        "of the longest\nRank 0: 0F0 0B0\nRank 1: 1F0 1B0\n";
    me_pipeline_order *order = read_steep(1024, 2048);
    me_str text = {0};
    me_schedule_text_steps(order, &text);
    assert_int_equal(me_str_status(&text), ME_OK);
    assert_memory_equal(me_str_text(&text), head, strlen(head));
    assert_true(text.length < 64 * 1024);
    me_str_fini(&text);
    me_pipeline_order_destroy(order);
}

/* The same shape, small: a grid, whose last rank is the longest. */
static void test_schedule_text__draws_what_is_small(void **state)
{
    (void)state;
    me_pipeline_order *order = read_steep(2, 3);
    me_str text = {0};
    me_schedule_text_steps(order, &text);
    assert_string_equal(me_str_text(&text), "        Rank 0 Rank 1\n"
                                            "Step 0: 0F0    1F0   \n"
                                            "Step 1: 0B0    2F0   \n"
                                            "Step 2:        2B0   \n"
                                            "Step 3:        1B0   \n");
    me_str_fini(&text);
    me_pipeline_order_destroy(order);
}

/* Many ranks share what one may take: 2,048 have 128 columns each. */
static void test_schedule_text__fewer_columns_for_more_ranks(void **state)
{
    (void)state;
    me_pipeline_order *order = read_steep(2048, 2048);
    me_ticks ticks = me_ticks_default();
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *timeline = NULL;
    me_diag diag = {.status = ME_OK};
    me_str text = {0};
    assert_int_equal(me_timeline_create(order, &model, &diag, &timeline),
                     ME_OK);
    const int64_t unit = me_schedule_text_time(order, timeline, 1, &text);
    assert_true(timeline->makespan / unit <= ME_TEXT_CELLS_MAX / 2048);
    assert_true(text.length < 16 * (size_t)ME_TEXT_CELLS_MAX);
    me_str_fini(&text);
    me_timeline_destroy(timeline);
    me_pipeline_order_destroy(order);
}

static void test_rank_stages__by_rank_ascending(void **state)
{
    (void)state;
    int32_t rank_of_stage[] = {2, 0, 2, 3, 0};
    const me_pipeline_order order = {
        .n_ranks = 4, .n_stages = 5, .rank_of_stage = rank_of_stage};
    static const int32_t first[] = {0, 2, 2, 4, 5};
    static const int32_t stages[] = {1, 4, 0, 2, 3};
    me_rank_stages found;
    assert_int_equal(me_rank_stages_init(&order, &found), ME_OK);
    assert_memory_equal(found.first, first, sizeof first);
    assert_memory_equal(found.stages, stages, sizeof stages);
    me_rank_stages_fini(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_text__lists_what_is_mostly_empty),
        cmocka_unit_test(test_schedule_text__draws_what_is_small),
        cmocka_unit_test(test_schedule_text__fewer_columns_for_more_ranks),
        cmocka_unit_test(test_rank_stages__by_rank_ascending),
    };
    return cmocka_run_group_tests_name("schedule_text", tests, NULL, NULL);
}
