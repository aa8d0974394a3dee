/* SPDX-License-Identifier: BSD-3-Clause */
#include "memest/memest.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static memest_order *order_of(const char *name, int32_t ranks,
                              int32_t microbatches)
{
    memest_pipeline pipeline = MEMEST_INIT(memest_pipeline);
    memest_order *order = NULL;
    pipeline.ranks = ranks;
    pipeline.microbatches = microbatches;
    assert_int_equal(memest_order_create(name, &pipeline, &order, NULL),
                     MEMEST_OK);
    return order;
}

static void test_api_schedule__actions(void **state)
{
    (void)state;
    static const char expected[] = "F0F1B0F2B1B2";
    memest_order *order = order_of("1f1b", 2, 3);
    char text[64] = "";
    assert_int_equal(memest_order_ranks(order), 2);
    assert_int_equal(memest_order_stages(order), 2);
    assert_int_equal(memest_order_microbatches(order), 3);
    assert_int_equal(memest_order_rank_of_stage(order, 1), 1);
    assert_int_equal(memest_order_rank_of_stage(order, 2), -1);
    for (size_t i = 0; i < memest_order_n_actions(order, 0); i++) {
        memest_action action = MEMEST_INIT(memest_action);
        assert_true(memest_order_action(order, 0, i, &action));
        const size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "%s%d", action.kind,
                       action.microbatch);
        assert_int_equal(action.stage, 0);
        assert_int_equal(action.chunk, 0);
    }
    assert_string_equal(text, expected);
    memest_action none = MEMEST_INIT(memest_action);
    assert_false(memest_order_action(order, 2, 0, &none));
    assert_false(memest_order_action(order, 0, 6, &none));
    assert_int_equal(memest_order_n_actions(order, -1), 0);
    assert_int_equal(memest_order_in_flight(order, 0), 2);
    assert_int_equal(memest_order_in_flight(order, 1), 1);
    assert_int_equal(memest_order_in_flight(order, 2), 0);
    memest_order_destroy(order);
    memest_order_destroy(NULL);
}

/* 1F1B of P ranks and m micro-batches: (m + P - 1)(F + B), P - 1 of it lost. */
static void test_api_schedule__course(void **state)
{
    (void)state;
    memest_order *order = order_of("Schedule1F1B", 4, 8);
    memest_course course = MEMEST_INIT(memest_course);
    memest_error *error = memest_error_create();
    assert_int_equal(memest_order_run(order, NULL, &course, error), MEMEST_OK);
    assert_int_equal(course.makespan, 11 * 3);
    assert_int_equal(course.bubble, 3 * 3);
    assert_int_equal(memest_order_run(order, "F=2,B=5", &course, error),
                     MEMEST_OK);
    assert_int_equal(course.makespan, 11 * 7);
    assert_int_equal(memest_order_run(order, "F=soon", &course, error),
                     MEMEST_ERR_CONFIG);
    course.struct_size = 0;
    assert_int_equal(memest_order_run(order, NULL, &course, error),
                     MEMEST_ERR_CONFIG);
    memest_error_destroy(error);
    memest_order_destroy(order);
}

static void test_api_schedule__table(void **state)
{
    (void)state;
    size_t n = 0;
    bool has_zbv = false;
    while (memest_schedule_name(n) != NULL) {
        assert_non_null(memest_schedule_summary(n));
        has_zbv = has_zbv || strcmp(memest_schedule_name(n), "zbv") == 0;
        n++;
    }
    assert_true(n > 5 && has_zbv);
    assert_null(memest_schedule_summary(n));
    assert_null(memest_schedule_torch_name(SIZE_MAX));
}

static void test_api_schedule__file(void **state)
{
    (void)state;
    static const char path[] = "test_api_schedule.csv";
    memest_order *order = order_of("zbv", 2, 4);
    memest_order *again = NULL;
    char *text = NULL;
    char *text_again = NULL;
    assert_int_equal(memest_order_text(order, &text, NULL), MEMEST_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(memest_order_read_file(path, &again, NULL), MEMEST_OK);
    assert_int_equal(memest_order_text(again, &text_again, NULL), MEMEST_OK);
    assert_string_equal(text, text_again);
    assert_int_equal(remove(path), 0);
    memest_text_destroy(text);
    memest_text_destroy(text_again);
    memest_order_destroy(again);
    memest_order_destroy(order);
}

static void test_api_schedule__refuses(void **state)
{
    (void)state;
    memest_error *error = memest_error_create();
    memest_pipeline pipeline = MEMEST_INIT(memest_pipeline);
    memest_order *order = NULL;
    assert_int_equal(memest_order_create("2f2b", &pipeline, &order, error),
                     MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), "2f2b"));
    assert_int_equal(memest_order_create("1f1b", &pipeline, &order, error),
                     MEMEST_ERR_CONFIG);
    pipeline.struct_size = 0;
    assert_int_equal(memest_order_create("1f1b", &pipeline, &order, error),
                     MEMEST_ERR_CONFIG);
    assert_int_equal(memest_order_read_file("no/such.csv", &order, error),
                     MEMEST_ERR_IO);
    assert_null(order);
    memest_error_destroy(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_schedule__actions),
        cmocka_unit_test(test_api_schedule__course),
        cmocka_unit_test(test_api_schedule__table),
        cmocka_unit_test(test_api_schedule__file),
        cmocka_unit_test(test_api_schedule__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
