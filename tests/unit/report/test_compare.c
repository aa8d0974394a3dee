/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_format.h"
#include "report/compare_timeline.h"
#include "report/comparison.h"
#include "support/test.h"

#include <string.h>

enum {
    ROWS = 6
};

/** One rank of one stage, with a forward and a backward of two micro-batches:
 *  two are in flight at most. */
typedef struct job {
    me_config config;
    me_course_part course[5];
    me_rank_result result;
    me_rank_result *results[1];
    me_report_rank ranks[1];
    me_time_span spans[4];
    me_time_stage stages[1];
    me_step_time step;
    me_report report;
} job;

static me_course_part part(const char *name, int32_t microbatch, uint64_t begin,
                           uint64_t peak, uint64_t end)
{
    return (me_course_part){
        .name = name,
        .chunk = microbatch < 0 ? -1 : 0,
        .microbatch = microbatch,
        .requested = {begin, peak, end},
        .allocated = {begin, peak, end},
        .reserved = {99, 99, 99},
    };
}

/** Fits, and takes @p step_ns; 0: nobody knows. */
static void make_job(job *j, int64_t step_ns, bool fits)
{
    memset(j, 0, sizeof *j);
    j->config.parallel.pipeline = 1;
    j->config.parallel.virtual_pipeline = 1;
    j->course[0] = part("F", 0, 1, 5, 4);
    j->course[1] = part("F", 1, 4, 8, 7);
    j->course[2] = part("B", 0, 7, 9, 4);
    j->course[3] = part("W", 1, 4, 6, 1);
    j->course[4] = part("other", -1, 1, 3, 2);
    j->result.course = j->course;
    j->result.n_course = 5;
    j->results[0] = &j->result;
    for (int i = 0; i < 4; i++) {
        j->spans[i] = (me_time_span){
            .part = i < 2 ? ME_TIME_FORWARD : ME_TIME_BACKWARD,
            .microbatch = i % 2,
            .start_ns = 10 * i,
            .end_ns = 10 * i + 8,
        };
    }
    j->stages[0] = (me_time_stage){.spans = j->spans, .n_spans = 4};
    j->step =
        (me_step_time){.n_stages = 1, .stages = j->stages, .step_ns = step_ns};
    j->report = (me_report){
        .config = &j->config,
        .world_size = 1,
        .results = j->results,
        .n_results = 1,
        .ranks = j->ranks,
        .verdict = {.risk = fits ? ME_RISK_FITS : ME_RISK_DOES_NOT_FIT,
                    .fits = fits},
        .time.step = step_ns == 0 ? NULL : &j->step,
    };
}

static void test_compare__sorts_and_ties(void **state)
{
    (void)state;
    static job jobs[ROWS];
    /* 100 and 114 are a tie, 115 is not, though 114 and 115 are close. */
    make_job(&jobs[0], 115, true);
    make_job(&jobs[1], 50, false);
    make_job(&jobs[3], 114, true);
    make_job(&jobs[4], 100, true);
    make_job(&jobs[5], 200, true);
    me_compare_row rows[ROWS];
    for (int i = 0; i < ROWS; i++) {
        rows[i] = (me_compare_row){.schedule = "s",
                                   .variant = "",
                                   .assignments = "",
                                   .report = &jobs[i].report};
    }
    rows[2].report = NULL;
    rows[2].reason = "no";
    const me_comparison comparison = {
        .version = "1", .name = "", .rows = rows, .n_rows = ROWS};
    me_compare_line *lines = NULL;
    assert_int_equal(me_compare_lines_create(&comparison, NULL, &lines), ME_OK);

    const struct {
        int row;
        int place;
        bool is_tie;
    } expected[ROWS] = {{4, 1, true},  {3, 1, true},  {0, 2, false},
                        {5, 3, false}, {1, 0, false}, {2, 0, false}};

    for (int i = 0; i < ROWS; i++) {
        assert_ptr_equal(lines[i].row, &rows[expected[i].row]);
        assert_int_equal(lines[i].place, expected[i].place);
        assert_int_equal(lines[i].is_tie, expected[i].is_tie);
    }
    assert_int_equal(lines[0].worst.in_flight, 2);
    assert_int_equal(lines[ROWS - 1].n_stages, 0);
    me_compare_lines_destroy(lines, ROWS);
}

/* A step that lacks some of the host's time is a lower bound, in each format;
 * under fixed durations nothing is missing. */
static void test_compare__lower_bounds_say_so(void **state)
{
    (void)state;
    static job jobs[1];
    make_job(&jobs[0], 100000000, true);
    jobs[0].report.time.host_lacks = "what is missing";
    jobs[0].report.time.tokens_per_second = 7;
    const me_step_time ticks = {.step_ns = 1};
    me_compare_row row = {.schedule = "s",
                          .variant = "",
                          .assignments = "",
                          .report = &jobs[0].report};
    const me_comparison comparison = {
        .version = "1", .name = "", .rows = &row, .n_rows = 1};
    me_compare_line *lines = NULL;
    assert_int_equal(me_compare_lines_create(&comparison, NULL, &lines), ME_OK);
    const me_compare_print print = {.comparison = &comparison, .lines = lines};
    me_str text = {0};
    assert_int_equal(me_compare_text(&print, &text), ME_OK);
    assert_non_null(strstr(me_str_text(&text), ">=100.0"));
    assert_non_null(strstr(me_str_text(&text), "<=7"));
    assert_non_null(strstr(me_str_text(&text), "what is missing is not in it"));
    me_str_fini(&text);
    assert_int_equal(me_compare_csv(&print, &text), ME_OK);
    assert_non_null(strstr(me_str_text(&text), ",what is missing,"));
    me_str_fini(&text);
    row.ticks_step = &ticks;
    assert_null(me_compare_host_lacks(&lines[0]));
    me_compare_lines_destroy(lines, 1);
}

/* What a setting leaves out or assumes is said once, of it alone where others
 * do not. */
static void test_compare__says_what_is_left_out(void **state)
{
    (void)state;
    static job jobs[2];
    me_flag_note flags[] = {
        {"--fp8", "FP8", {ME_REACH_MUCH, ME_REACH_SOME}},
        {"--lost", NULL, ME_HIGHER(SMALL)},
    };
    char assumption[] = "the moon is round";
    char *assumptions[] = {assumption};
    me_compare_row rows[2];
    for (int i = 0; i < 2; i++) {
        make_job(&jobs[i], 100, true);
        jobs[i].config.not_modelled =
            (me_flag_list){.flags = flags, .count = 1 + i};
        jobs[i].report.assumptions = assumptions;
        jobs[i].report.n_assumptions = 1;
        rows[i] = (me_compare_row){.schedule = i == 0 ? "a" : "b",
                                   .variant = "",
                                   .assignments = "",
                                   .report = &jobs[i].report};
    }
    const me_comparison comparison = {
        .version = "1", .name = "", .rows = rows, .n_rows = 2};
    me_str text = {0};
    me_compare_notes(&comparison, &text);
    assert_string_equal(
        me_str_text(&text),
        "\nNot modelled: these flags may change memory, and the numbers above "
        "leave them out\n  --fp8: FP8 (lower: much, higher: some)\n"
        "  --lost (higher: small) (b)\n"
        "\nAssumptions\n  the moon is round\n");
    me_str_fini(&text);
}

/* The fastest leaves out what may be of any size: it has no place, and comes
 * before what does not fit. One that does not fit whatever is left out is said
 * not to. */
static void test_compare__no_place_for_what_is_left_out(void **state)
{
    (void)state;
    static job jobs[4];
    me_flag_note any[] = {{"--any", NULL, ME_LOWER(ANY)}};
    me_flag_note more[] = {{"--more", NULL, ME_HIGHER(ANY)}};
    const me_step_time steps[] = {
        {.step_ns = 1}, {.step_ns = 100}, {.step_ns = 2}, {.step_ns = 3}};
    me_compare_row rows[4];
    for (int i = 0; i < 4; i++) {
        make_job(&jobs[i], 100, i < 2);
        jobs[i].report.time.step = NULL;
        rows[i] = (me_compare_row){.schedule = "s",
                                   .variant = "",
                                   .report = &jobs[i].report,
                                   .ticks_step = &steps[i]};
    }
    jobs[0].config.not_modelled = (me_flag_list){.flags = any, .count = 1};
    jobs[3].config.not_modelled = (me_flag_list){.flags = more, .count = 1};
    const me_comparison comparison = {
        .version = "1", .name = "", .rows = rows, .n_rows = 4};
    me_compare_line *lines = NULL;
    assert_int_equal(me_compare_lines_create(&comparison, NULL, &lines), ME_OK);

    const struct {
        const me_compare_row *row;
        int32_t place;
        bool is_open;
    } right[] = {{&rows[1], 1, false},
                 {&rows[0], 0, true},
                 {&rows[2], 0, false},
                 {&rows[3], 0, false}};

    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(lines[i].row, right[i].row);
        assert_int_equal(lines[i].place, right[i].place);
        assert_int_equal(lines[i].is_open, right[i].is_open);
    }
    me_compare_lines_destroy(lines, 4);
}

/* Fixed durations have no noise: 114 is behind 100, and equal steps tie. */
static void test_compare__fixed_durations_are_exact(void **state)
{
    (void)state;
    static job jobs[3];
    const me_ticks durations = me_ticks_default();
    const me_step_time steps[] = {
        {.step_ns = 114}, {.step_ns = 100}, {.step_ns = 100}};
    me_compare_row rows[3];
    for (int i = 0; i < 3; i++) {
        make_job(&jobs[i], 100 + 100 * (i == 1), true);
        rows[i] = (me_compare_row){.schedule = "s",
                                   .variant = "",
                                   .report = &jobs[i].report,
                                   .ticks_step = &steps[i]};
    }
    const me_comparison comparison = {.version = "1",
                                      .name = "",
                                      .durations = &durations,
                                      .rows = rows,
                                      .n_rows = 3};
    me_compare_line *lines = NULL;
    assert_int_equal(me_compare_lines_create(&comparison, NULL, &lines), ME_OK);
    assert_ptr_equal(lines[0].row, &rows[1]);
    assert_ptr_equal(lines[1].row, &rows[2]);
    assert_ptr_equal(lines[2].row, &rows[0]);
    assert_int_equal(lines[1].place, 1);
    assert_true(lines[0].is_tie && lines[1].is_tie);
    assert_int_equal(lines[2].place, 2);
    assert_false(lines[2].is_tie);
    assert_ptr_equal(me_compare_step(&lines[2]), &steps[0]);
    me_compare_lines_destroy(lines, 3);
}

static void test_compare__keeps_the_order_without_times(void **state)
{
    (void)state;
    static job jobs[2];
    make_job(&jobs[0], 0, true);
    make_job(&jobs[1], 0, true);
    const me_compare_row rows[] = {
        {.schedule = "a", .variant = "", .report = &jobs[0].report},
        {.schedule = "b", .variant = "", .report = &jobs[1].report}};
    const me_comparison comparison = {
        .version = "1", .name = "", .rows = rows, .n_rows = 2};
    me_compare_line *lines = NULL;
    assert_int_equal(me_compare_lines_create(&comparison, NULL, &lines), ME_OK);
    assert_string_equal(lines[0].row->schedule, "a");
    assert_int_equal(lines[0].place, 0);
    assert_int_equal(lines[1].place, 0);
    me_compare_lines_destroy(lines, 2);
}

static void test_compare__puts_memory_on_the_time_axis(void **state)
{
    (void)state;
    static job j;
    make_job(&j, 60, true);
    me_compare_stage stage = {.result = &j.result};
    const me_compare_row row = {.report = &j.report};
    const me_compare_line line = {.row = &row, .stages = &stage, .n_stages = 1};
    me_timed_course course;
    assert_int_equal(me_timed_course_init(&line, 0, &course), ME_OK);
    assert_int_equal(course.n_parts, 5);
    assert_int_equal(course.parts[2].start_ns, 20);
    assert_string_equal(course.parts[2].part->name, "B");
    assert_string_equal(course.parts[4].part->name, "optimizer");
    assert_int_equal(course.parts[4].start_ns, 38);
    assert_int_equal(course.parts[4].end_ns, 60);
    assert_int_equal(course.parts[4].part->requested.peak, 3);
    me_timed_course_fini(&course);
    j.spans[1].microbatch = 5; /* times of another order */
    assert_int_equal(me_timed_course_init(&line, 0, &course), ME_OK);
    assert_int_equal(course.n_parts, 0);
    me_timed_course_fini(&course);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare__sorts_and_ties),
        cmocka_unit_test(test_compare__lower_bounds_say_so),
        cmocka_unit_test(test_compare__says_what_is_left_out),
        cmocka_unit_test(test_compare__no_place_for_what_is_left_out),
        cmocka_unit_test(test_compare__fixed_durations_are_exact),
        cmocka_unit_test(test_compare__keeps_the_order_without_times),
        cmocka_unit_test(test_compare__puts_memory_on_the_time_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
