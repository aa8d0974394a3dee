/* SPDX-License-Identifier: BSD-3-Clause */
// Every line of tests/golden/schedules/facts.tsv, made again, and the orders
// of orders_4x8.csv.

#include "base/str.h"
#include "parallel/schedule_check.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "parallel/timeline.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ME_TEST_LINE = 4096,
    ME_TEST_NAME = 32,
    N_FACTS = 143
};

/** A pipeline of a schedule, and what is made of it. */
typedef struct pipeline_case {
    me_pipeline_order *order;
    me_pipeline_order *lowered;
    me_timeline *timelines[3]; /**< F I W = 1 1 1; 2 3 1; 1 1 1 and comm 1 */
} pipeline_case;

static me_timeline *run(const me_pipeline_order *order, me_ticks ticks)
{
    me_timeline *timeline = NULL;
    const me_timeline_model model = me_ticks_model(&ticks);
    assert_int_equal(me_timeline_create(order, &model, NULL, &timeline), ME_OK);
    return timeline;
}

static pipeline_case make_case(const char *name, const me_pipeline *pipeline)
{
    pipeline_case c = {.order = NULL};
    me_diag diag = {0};
    if (me_pipeline_order_create(me_schedule_find(name), pipeline, &diag,
                                 &c.order) != ME_OK) {
        fail_msg("%s: %s", name, diag.text);
    }
    assert_int_equal(me_pipeline_order_check(c.order, NULL), ME_OK);
    assert_int_equal(me_pipeline_order_lower(c.order, NULL, &c.lowered), ME_OK);
    assert_int_equal(me_pipeline_order_check_transfers(c.lowered, NULL), ME_OK);
    c.timelines[0] = run(c.order, (me_ticks){1, 1, 1, 0, 0, 0, false});
    c.timelines[1] = run(c.order, (me_ticks){2, 3, 1, 0, 0, 0, false});
    c.timelines[2] = run(c.order, (me_ticks){1, 1, 1, 0, 0, 1, false});
    return c;
}

static void case_fini(pipeline_case *c)
{
    me_pipeline_order_destroy(c->order);
    me_pipeline_order_destroy(c->lowered);
    for (int i = 0; i < 3; i++) {
        me_timeline_destroy(c->timelines[i]);
    }
}

/** FNV-1a of an order's file; `-` where the line has no digest either. */
static void write_digest(const me_pipeline_order *order, const char *expected,
                         me_str *line)
{
    if (*expected == '-') {
        me_str_append(line, "\t-");
        return;
    }
    me_str text = {0};
    me_schedule_csv_write(order, &text);
    assert_int_equal(me_str_status(&text), ME_OK);
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.length; i++) {
        digest = (digest ^ (uint8_t)text.text[i]) * UINT64_C(0x100000001b3);
    }
    me_str_printf(line, "\t%016" PRIx64, digest);
    me_str_fini(&text);
}

/** Sends, receives, and receives that are posted before they are needed. */
typedef struct transfers {
    int32_t sends;
    int32_t receives;
    int32_t posted;
} transfers;

/** Does a forward or backward take something that was received? */
static bool takes(const me_pipeline_order *o, const me_action *action,
                  int32_t rank)
{
    int32_t from = -1;
    if (action->kind == ME_ACTION_FORWARD) {
        from = me_placement_previous(o->placement, o->n_stages, action->stage);
    } else if (action->kind != ME_ACTION_WEIGHT_GRADIENT) {
        from = me_placement_next(o->placement, o->n_stages, action->stage);
    }
    return from >= 0 && o->rank_of_stage[from] != rank;
}

static transfers count_transfers(const me_pipeline_order *o, int32_t rank)
{
    transfers t = {0, 0, 0};
    int32_t posted = 0;
    for (int32_t i = 0; i < o->ranks[rank].count; i++) {
        const me_action *action = &o->ranks[rank].items[i];
        if (action->kind == ME_ACTION_SEND_FORWARD ||
            action->kind == ME_ACTION_SEND_BACKWARD) {
            t.sends++;
        } else if (!me_action_computes((me_action_kind)action->kind)) {
            t.receives++;
            posted++;
            t.posted = posted > t.posted ? posted : t.posted;
        } else if (takes(o, action, rank)) {
            posted--;
        }
    }
    return t;
}

/** Actions of a rank, a block being one. */
static int32_t count_actions(const me_actions *actions)
{
    int32_t n = 0;
    for (int32_t i = 0; i < actions->count; i++) {
        n += actions->items[i].is_overlapped ? 0 : 1;
    }
    return n;
}

enum {
    N_COLUMNS = 12
};

/** The numbers of one rank, in the order of the columns; peak_half in halves. */
static void rank_numbers(const pipeline_case *c, int32_t rank,
                         int64_t numbers[N_COLUMNS])
{
    const me_action_peaks peaks = me_actions_peaks(&c->order->ranks[rank]);
    const transfers t = count_transfers(c->lowered, rank);
    const me_timeline_rank *course = &c->timelines[0]->ranks[rank];
    const int64_t all[N_COLUMNS] = {
        peaks.forwards_first,
        peaks.full,
        peaks.activation,
        peaks.pending_w,
        peaks.half,
        count_actions(&c->order->ranks[rank]),
        t.sends,
        t.receives,
        t.posted,
        course->first_start,
        course->end,
        course->busy,
    };
    memcpy(numbers, all, sizeof all);
}

static void write_columns(const pipeline_case *c, me_str *line)
{
    enum {
        HALF = 4 /**< the column in halves */
    };

    for (int column = 0; column < N_COLUMNS; column++) {
        for (int32_t rank = 0; rank < c->order->n_ranks; rank++) {
            int64_t numbers[N_COLUMNS];
            rank_numbers(c, rank, numbers);
            me_str_append(line, rank == 0 ? "\t" : ",");
            if (column == HALF) {
                me_str_printf(line, "%" PRId64 ".%d", numbers[column] / 2,
                              numbers[column] % 2 == 0 ? 0 : 5);
            } else {
                me_str_printf(line, "%" PRId64, numbers[column]);
            }
        }
    }
}

/** What me_schedule_in_flight() says of each rank. */
static void check_in_flight(const char *name, me_pipeline pipeline,
                            const me_pipeline_order *order)
{
    const me_schedule *schedule = me_schedule_find(name);
    for (pipeline.rank = 0; pipeline.rank < pipeline.ranks; pipeline.rank++) {
        const int32_t most = me_schedule_in_flight(schedule, &pipeline);
        const int32_t counted =
            me_actions_in_flight(&order->ranks[pipeline.rank]);
        if (schedule->is_bound) {
            assert_in_range(counted, 1, most);
        } else {
            assert_int_equal(counted, most);
        }
    }
}

static const char *next_field(const char *field)
{
    const char *tab = strchr(field, '\t');
    assert_non_null(tab);
    return tab + 1;
}

static void check_line(const char *line)
{
    char name[ME_TEST_NAME] = "";
    const char *field = next_field(line);
    memcpy(name, line, (size_t)(field - 1 - line));
    me_pipeline pipeline = {.ranks = (int32_t)strtol(field, NULL, 10)};
    field = next_field(field);
    pipeline.microbatches = (int32_t)strtol(field, NULL, 10);
    field = next_field(field);
    pipeline.chunks = (int32_t)strtol(field, NULL, 10);
    field = next_field(field);

    pipeline_case c = make_case(name, &pipeline);
    me_str made = {0};
    me_str_printf(&made, "%s\t%d\t%d\t%d", name, pipeline.ranks,
                  pipeline.microbatches, pipeline.chunks);
    write_digest(c.order, field, &made);
    write_digest(c.lowered, next_field(field), &made);
    for (int i = 0; i < 3; i++) {
        me_str_printf(&made, "\t%" PRId64, c.timelines[i]->makespan);
    }
    write_columns(&c, &made);
    me_str_append(&made, "\n");
    assert_string_equal(me_str_text(&made), line);
    check_in_flight(name, pipeline, c.order);
    me_str_fini(&made);
    case_fini(&c);
}

static void test_schedule_facts__every_line(void **state)
{
    (void)state;
    FILE *file = fopen(ME_TEST_GOLDEN "/schedules/facts.tsv", "r");
    assert_non_null(file);
    char line[ME_TEST_LINE];
    int n = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#') {
            check_line(line);
            n++;
        }
    }
    fclose(file);
    assert_int_equal(n, N_FACTS);
}

/** A block of orders_4x8.csv after its head, up to the next one. */
static void check_order(char *head, FILE *file)
{
    char *space = strchr(head + 2, ' ');
    assert_non_null(space);
    *space = '\0';
    const me_pipeline pipeline = {.ranks = 4,
                                  .microbatches = 8,
                                  .chunks =
                                      (int32_t)strtol(space + 1, NULL, 10)};
    pipeline_case c = make_case(head + 2, &pipeline);
    me_str made = {0};
    me_schedule_csv_write(c.order, &made);
    me_str expected = {0};
    char line[ME_TEST_LINE];
    for (int rank = 0; rank < 4; rank++) {
        assert_non_null(fgets(line, sizeof line, file));
        me_str_append(&expected, line);
    }
    assert_string_equal(me_str_text(&made), me_str_text(&expected));
    me_str_fini(&made);
    me_str_fini(&expected);
    case_fini(&c);
}

static void test_schedule_facts__orders_of_four_ranks(void **state)
{
    (void)state;
    FILE *file = fopen(ME_TEST_GOLDEN "/schedules/orders_4x8.csv", "r");
    assert_non_null(file);
    char line[ME_TEST_LINE];
    int n = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '=') {
            check_order(line, file);
            n++;
        }
    }
    fclose(file);
    assert_int_equal(n, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_facts__every_line),
        cmocka_unit_test(test_schedule_facts__orders_of_four_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
