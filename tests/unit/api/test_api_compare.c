/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/small_job.h"
#include "support/test.h"

#include <string.h>

static const char *const schedules[] = {"gpipe", "1f1b", "interleaved:2"};
static const char *const variants[] = {"big:train.micro_batch_size=2",
                                       "odd:parallel.tensor=3"};

enum {
    N_SCHEDULES = sizeof schedules / sizeof schedules[0],
    N_VARIANTS = sizeof variants / sizeof variants[0]
};

static memest_compare_options all_options(void)
{
    memest_compare_options options = MEMEST_INIT(memest_compare_options);
    options.schedules = schedules;
    options.n_schedules = N_SCHEDULES;
    options.variants = variants;
    options.n_variants = N_VARIANTS;
    return options;
}

static memest_comparison *compare(const memest_compare_options *options)
{
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_comparison *comparison = NULL;
    if (memest_compare(job, options, &comparison, error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    memest_job_destroy(job); /* the comparison does not need it */
    return comparison;
}

/** The job of a row, made by hand and estimated alone. */
static memest_report *estimate(const memest_compare_row *row)
{
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = NULL;
    const bool is_interleaved = strcmp(row->schedule, "interleaved:2") == 0;
    assert_int_equal(
        memest_job_set(job, "pipeline.schedule",
                       is_interleaved ? "interleaved" : row->schedule, NULL),
        MEMEST_OK);
    assert_int_equal(memest_job_set(job, "parallel.virtual_pipeline",
                                    is_interleaved ? "2" : "1", NULL),
                     MEMEST_OK);
    if (strcmp(row->variant, "big") == 0) {
        assert_int_equal(
            memest_job_set(job, "train.micro_batch_size", "2", NULL),
            MEMEST_OK);
    }
    assert_int_equal(memest_estimate(job, NULL, &report, NULL), MEMEST_OK);
    memest_job_destroy(job);
    return report;
}

/** The most of all ranks, or of those of a stage, as the table has it. */
static memest_peak most_of(const memest_report *report, int32_t stage)
{
    memest_peak most = MEMEST_INIT(memest_peak);
    for (int32_t i = 0; i < memest_report_world_size(report); i++) {
        memest_peak peak = MEMEST_INIT(memest_peak);
        memest_rank rank = MEMEST_INIT(memest_rank);
        assert_true(memest_report_rank(report, i, &rank));
        assert_true(memest_report_peak(report, i, &peak));
        if (stage >= 0 && rank.pp != stage) {
            continue;
        }
#define RAISE(kind) most.kind = peak.kind > most.kind ? peak.kind : most.kind
        RAISE(requested_bytes);
        RAISE(allocated_bytes);
        RAISE(reserved_bytes);
        RAISE(device_bytes);
#undef RAISE
    }
    return most;
}

static void check_stages(const memest_comparison *comparison, size_t row,
                         const memest_report *report)
{
    for (int32_t i = 0; i < 2; i++) {
        memest_compare_stage stage = MEMEST_INIT(memest_compare_stage);
        const memest_peak most = most_of(report, i);
        assert_true(memest_comparison_stage(comparison, row, i, &stage));
        assert_int_equal(stage.stage, i);
        assert_int_equal(stage.worst_rank / 2, i);
        assert_true(stage.requested_bytes == most.requested_bytes);
        assert_true(stage.device_bytes == most.device_bytes);
    }
    memest_compare_stage none = MEMEST_INIT(memest_compare_stage);
    assert_false(memest_comparison_stage(comparison, row, 2, &none));
    assert_false(memest_comparison_stage(comparison, row, -1, &none));
}

/* Every row that runs has the peaks that its job has alone. */
static void test_api_compare__rows(void **state)
{
    (void)state;
    const memest_compare_options options = all_options();
    memest_comparison *c = compare(&options);
    const size_t n = memest_comparison_n_rows(c);
    size_t n_running = 0;
    assert_int_equal(n, (size_t)N_SCHEDULES * (N_VARIANTS + 1));
    for (size_t i = 0; i < n; i++) {
        memest_compare_row row = MEMEST_INIT(memest_compare_row);
        assert_true(memest_comparison_row(c, i, &row));
        if (row.reason != NULL) {
            assert_string_equal(row.variant, "odd");
            assert_string_equal(row.assignments, "parallel.tensor=3");
            assert_int_equal(row.requested_bytes, 0);
            assert_null(memest_comparison_report(c, i));
            continue;
        }
        assert_int_equal(n_running++, i); /* what cannot run comes last */
        memest_report *alone = estimate(&row);
        const memest_peak most = most_of(alone, -1);
        assert_true(row.requested_bytes == most.requested_bytes);
        assert_true(row.allocated_bytes == most.allocated_bytes);
        assert_true(row.reserved_bytes == most.reserved_bytes);
        assert_true(row.device_bytes == most.device_bytes);
        assert_int_equal(row.n_stages, 2);
        check_stages(c, i, alone);
        assert_non_null(memest_comparison_report(c, i));
        memest_report_destroy(alone);
    }
    assert_int_equal(n_running, 2 * N_SCHEDULES);
    memest_compare_row none = MEMEST_INIT(memest_compare_row);
    assert_false(memest_comparison_row(c, n, &none));
    assert_null(memest_comparison_report(c, n));
    memest_comparison_destroy(c);
    memest_comparison_destroy(NULL);
}

/* Two ranks and eight micro-batches of F=1, B=2: 1f1b and GPipe take 27 ticks,
 * a bubble of 3; interleaved over two chunks halves it. In flight, 1f1b holds
 * two micro-batches, GPipe all of them. */
static void test_api_compare__durations(void **state)
{
    (void)state;
    memest_compare_options options = all_options();
    options.n_variants = 0;
    options.durations = "F=1,B=2";
    memest_comparison *c = compare(&options);
    assert_int_equal(memest_comparison_n_rows(c), N_SCHEDULES);
    for (size_t i = 0; i < N_SCHEDULES; i++) {
        memest_compare_row row = MEMEST_INIT(memest_compare_row);
        assert_true(memest_comparison_row(c, i, &row));
        const bool is_interleaved = strcmp(row.schedule, "interleaved:2") == 0;
        const bool is_gpipe = strcmp(row.schedule, "gpipe") == 0;
        assert_true(row.has_step);
        const double bubble = is_interleaved ? 1.5 : 3;
        assert_true(row.bubble > bubble - 1e-9 && row.bubble < bubble + 1e-9);
        assert_true(row.step > bubble + 24 - 1e-9 &&
                    row.step < bubble + 24 + 1e-9);
        assert_int_equal(row.place, is_interleaved ? 1 : 2);
        assert_int_equal(row.is_tie, !is_interleaved);
        assert_int_equal(row.chunks, is_interleaved ? 2 : 1);
        if (!is_interleaved) {
            assert_int_equal(row.in_flight, is_gpipe ? 8 : 2);
        }
    }
    char *text = NULL;
    assert_int_equal(
        memest_comparison_text(c, MEMEST_FORMAT_CSV, false, &text, NULL, NULL),
        MEMEST_ERR_CONFIG);
    assert_int_equal(
        memest_comparison_text(c, MEMEST_FORMAT_TEXT, false, &text, NULL, NULL),
        MEMEST_OK);
    assert_non_null(strstr(text, "ticks"));
    memest_text_destroy(text);
    memest_comparison_destroy(c);
}

static void test_api_compare__texts(void **state)
{
    (void)state;
    const memest_compare_options options = all_options();
    memest_comparison *c = compare(&options);
    char *text = NULL;
    size_t length = 0;
    for (int format = MEMEST_FORMAT_TEXT; format <= MEMEST_FORMAT_CSV;
         format++) {
        assert_int_equal(memest_comparison_text(c, (memest_format)format, true,
                                                &text, &length, NULL),
                         MEMEST_OK);
        assert_int_equal(strlen(text), length);
        assert_non_null(strstr(text, "interleaved:2"));
        memest_text_destroy(text);
    }
    assert_int_equal(memest_comparison_text(c, MEMEST_FORMAT_CHECK, false,
                                            &text, NULL, NULL),
                     MEMEST_ERR_CONFIG);
    memest_comparison_destroy(c);
}

static void check_refused(const memest_compare_options *options,
                          const char *part)
{
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_comparison *comparison = NULL;
    assert_int_equal(memest_compare(job, options, &comparison, error),
                     MEMEST_ERR_CONFIG);
    assert_null(comparison);
    if (strstr(memest_error_text(error), part) == NULL) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    memest_job_destroy(job);
}

static void test_api_compare__refuses(void **state)
{
    (void)state;
    static const char *const unknown[] = {"2f2b"};
    static const char *const wrong[] = {"x:parallel.tensr=2"};
    check_refused(NULL, "needs --schedule or --variant");
    memest_compare_options options = all_options();
    options.struct_size = 2;
    check_refused(&options, "struct_size");
    options = all_options();
    options.schedules = unknown;
    options.n_schedules = 1;
    check_refused(&options, "2f2b");
    options = all_options();
    options.variants = wrong;
    options.n_variants = 1;
    check_refused(&options, "parallel.tensr");
    options = all_options();
    options.durations = "F=x";
    check_refused(&options, "F=x");
    options = all_options();
    options.n_schedules = 0;
    options.n_variants = 0;
    check_refused(&options, "needs --schedule or --variant");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_compare__rows),
        cmocka_unit_test(test_api_compare__durations),
        cmocka_unit_test(test_api_compare__texts),
        cmocka_unit_test(test_api_compare__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
