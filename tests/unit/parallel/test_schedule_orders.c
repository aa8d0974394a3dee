// Every order of tests/golden/schedules, action by action.

#include "parallel/schedule.h"
#include "support/test.h"

#include <stdio.h>
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
    char found[ME_TEST_TOKEN] = "";
    strncat(found, *cursor, (size_t)length);
    assert_string_equal(found, expected);
    *cursor += length;
}

/** One rank's line: index, peak, actions. */
static void check_rank(const me_schedule *schedule, me_pipeline pipeline,
                       const char *line)
{
    int peak = 0;
    int length = 0;
    assert_int_equal(sscanf(line, "%d %d%n", &pipeline.rank, &peak, &length),
                     2);
    me_actions *actions = NULL;
    assert_int_equal(me_actions_create(schedule, &pipeline, NULL, &actions),
                     ME_OK);
    assert_int_equal(me_actions_in_flight(actions), peak);
    assert_int_equal(me_schedule_in_flight(schedule, &pipeline), peak);
    const char *cursor = line + length;
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
        if (sscanf(line, "pipeline %d %d %d", &pipeline.ranks,
                   &pipeline.microbatches, &pipeline.chunks) == 3) {
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
