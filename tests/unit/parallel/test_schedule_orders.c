/* SPDX-License-Identifier: BSD-3-Clause */
// Every order of tests/golden/schedules, action by action.

#include "parallel/schedule.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ME_TEST_LINE = 4096,
    ME_TEST_TOKEN = 32
};

/** Compare one action with the next word of a line. */
static void check_action(const me_action *action, const char **cursor)
{
    char expected[ME_TEST_TOKEN];
    const int length = snprintf(expected, sizeof expected, " %s%d.%d",
                                me_action_letter((me_action_kind)action->kind),
                                action->chunk, action->microbatch);
    if (strncmp(*cursor, expected, (size_t)length) != 0) {
        fail_msg("expected \"%s\" before \"%s\"", expected, *cursor);
    }
    *cursor += length;
}

/** The number at the cursor, which goes on behind it. */
static int32_t read_number(const char **cursor)
{
    char *end = NULL;
    const long number = strtol(*cursor, &end, 10);
    assert_true(end != *cursor && number >= 0 && number < INT32_MAX);
    *cursor = end;
    return (int32_t)number;
}

/** One rank's line: index, peak, actions. */
static void check_rank(const me_schedule *schedule, me_pipeline pipeline,
                       const char *line)
{
    const char *cursor = line;
    pipeline.rank = read_number(&cursor);
    const int32_t peak = read_number(&cursor);
    me_actions *actions = NULL;
    assert_int_equal(me_actions_create(schedule, &pipeline, NULL, &actions),
                     ME_OK);
    assert_int_equal(me_actions_in_flight(actions), peak);
    assert_int_equal(me_schedule_in_flight(schedule, &pipeline), peak);
    for (int32_t i = 0; i < actions->count; i++) {
        check_action(&actions->items[i], &cursor);
    }
    assert_string_equal(cursor, "\n");
    me_actions_destroy(actions);
}

static void check_file(const char *name, int n_ranks)
{
    char line[ME_TEST_LINE];
    snprintf(line, sizeof line, "%s/schedules/%s.txt", ME_TEST_GOLDEN, name);
    FILE *file = fopen(line, "r");
    assert_non_null(file);
    me_pipeline pipeline = {0};
    int checked = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') {
            continue;
        }
        if (strncmp(line, "pipeline ", strlen("pipeline ")) == 0) {
            const char *cursor = line + strlen("pipeline ");
            pipeline.ranks = read_number(&cursor);
            pipeline.microbatches = read_number(&cursor);
            pipeline.chunks = read_number(&cursor);
            continue;
        }
        check_rank(me_schedule_find(name), pipeline, line);
        checked++;
    }
    fclose(file);
    assert_int_equal(checked, n_ranks);
}

static void test_schedule_orders__gpipe(void **state)
{
    (void)state;
    check_file("gpipe", 42);
}

static void test_schedule_orders__1f1b(void **state)
{
    (void)state;
    check_file("1f1b", 42);
}

static void test_schedule_orders__interleaved(void **state)
{
    (void)state;
    check_file("interleaved", 34);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_orders__gpipe),
        cmocka_unit_test(test_schedule_orders__1f1b),
        cmocka_unit_test(test_schedule_orders__interleaved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
