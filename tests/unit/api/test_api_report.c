/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/small_job.h"
#include "support/test.h"

#include <string.h>

static memest_report *estimate(memest_job *job)
{
    memest_report *report = NULL;
    memest_error *error = memest_error_create();
    const memest_status status = memest_estimate(job, NULL, &report, error);
    if (status != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    return report;
}

static void test_api_report__ranks(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = estimate(job);
    memest_job_destroy(job); /* the report does not need it */
    assert_int_equal(memest_report_world_size(report), SMALL_JOB_RANKS);
    for (int32_t i = 0; i < SMALL_JOB_RANKS; i++) {
        memest_rank rank = MEMEST_INIT(memest_rank);
        assert_true(memest_report_rank(report, i, &rank));
        assert_int_equal(rank.rank, i);
        assert_int_equal(rank.tp, i % 2);
        assert_int_equal(rank.pp, i / 2);
        assert_true(rank.parameter_bytes == 2 * rank.parameters);
    }
    memest_rank none = MEMEST_INIT(memest_rank);
    assert_false(memest_report_rank(report, -1, &none));
    assert_false(memest_report_rank(report, SMALL_JOB_RANKS, &none));
    assert_int_equal(memest_report_n_modules(report, 99), 0);
    memest_report_destroy(report);
    memest_report_destroy(NULL);
}

static void test_api_report__peak_adds_up(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = estimate(job);
    for (int32_t i = 0; i < SMALL_JOB_RANKS; i++) {
        memest_peak peak = MEMEST_INIT(memest_peak);
        uint64_t sum = 0;
        assert_true(memest_report_peak(report, i, &peak));
        for (int c = 0; c < MEMEST_CATEGORY_COUNT; c++) {
            sum += memest_report_peak_category_bytes(report, i,
                                                     (memest_category)c);
        }
        assert_true(peak.requested_bytes > 0 && sum == peak.requested_bytes);
        assert_true(peak.allocated_bytes >= peak.requested_bytes);
        assert_true(peak.reserved_bytes >= peak.allocated_bytes);
        assert_true(peak.device_bytes > peak.reserved_bytes);
        assert_int_equal(peak.iteration, 1);

        /* The same peak stands with the iterations, behind set-up and 0. */
        memest_peak same = MEMEST_INIT(memest_peak);
        assert_true(memest_report_iteration(report, i, 2, &same));
        assert_true(same.requested_bytes == peak.requested_bytes);
        assert_string_equal(same.phase, peak.phase);
        assert_true(memest_report_iteration(report, i, 0, &same));
        assert_int_equal(same.iteration, -1);
        assert_false(memest_report_iteration(
            report, i, memest_report_n_iterations(report, i), &same));
    }
    memest_report_destroy(report);
    memest_job_destroy(job);
}

/* Records of older and newer callers: what both have is filled, no byte more,
 * and what only the caller has is zero. */
static void test_api_report__records_have_sizes(void **state)
{
    (void)state;

    struct {
        memest_rank rank;
        uint64_t newer;
        uint64_t behind;
    } wide = {.newer = 7, .behind = 7};

    memest_job *job = me_small_job_create(NULL);
    memest_report *report = estimate(job);
    wide.rank.struct_size = sizeof wide.rank + sizeof wide.newer;
    assert_true(memest_report_rank(report, 3, &wide.rank));
    assert_int_equal(wide.rank.rank, 3);
    assert_true(wide.newer == 0 && wide.behind == 7);

    memest_rank narrow;
    memset(&narrow, 0x55, sizeof narrow);
    narrow.struct_size = offsetof(memest_rank, pp);
    assert_true(memest_report_rank(report, 3, &narrow));
    assert_int_equal(narrow.tp, 1);
    assert_int_equal(narrow.pp, 0x55555555);

    narrow.struct_size = 0;
    assert_false(memest_report_rank(report, 3, &narrow));
    memest_report_destroy(report);
    memest_job_destroy(job);
}

static void test_api_report__points_and_modules(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = estimate(job);
    memest_point point = MEMEST_INIT(memest_point);
    assert_true(memest_report_n_points(report, 0) > 2);
    assert_true(memest_report_point(report, 0, 1, &point));
    assert_string_equal(point.name, "model_built");
    assert_true(point.requested_peak_bytes >= point.requested_bytes);

    bool has_layer = false;
    for (size_t i = 0; i < memest_report_n_modules(report, 0); i++) {
        memest_module module = MEMEST_INIT(memest_module);
        assert_true(memest_report_module(report, 0, i, &module));
        assert_true(module.parent == SIZE_MAX || module.parent < i);
        has_layer = has_layer || strcmp(module.name, "decoder.layers.1") == 0;
    }
    assert_true(has_layer);
    memest_report_destroy(report);
    memest_job_destroy(job);
}

static void test_api_report__verdict(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = estimate(job);
    memest_verdict verdict = MEMEST_INIT(memest_verdict);
    memest_limit limit = MEMEST_INIT(memest_limit);
    memest_device device = MEMEST_INIT(memest_device);
    assert_true(memest_report_verdict(report, &verdict));
    assert_int_equal(verdict.risk, MEMEST_RISK_FITS);
    assert_true(verdict.fits && verdict.lets_go);
    assert_true(verdict.worst_bytes < verdict.capacity_bytes);
    assert_string_equal(verdict.basis, "device");
    assert_true(memest_report_limit(report, 0, &limit));
    assert_false(limit.is_oom);
    assert_null(limit.message);
    assert_true(memest_report_device(report, 0, &device));
    assert_true(device.context_bytes > 0);
    memest_report_destroy(report);

    assert_int_equal(memest_job_set(job, "device.memory_limit", "40MiB", NULL),
                     MEMEST_OK);
    report = estimate(job);
    assert_true(memest_report_verdict(report, &verdict));
    assert_false(verdict.lets_go);
    assert_true(verdict.oom_rank >= 0);
    assert_true(memest_report_limit(report, verdict.oom_rank, &limit));
    assert_true(limit.is_oom);
    assert_non_null(strstr(limit.message, "out of memory"));
    memest_report_destroy(report);
    memest_job_destroy(job);
}

static void test_api_report__text(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_report *report = estimate(job);
    memest_error *error = memest_error_create();
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(
        memest_report_text(report, MEMEST_FORMAT_JSON, &text, &length, error),
        MEMEST_OK);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "\"world_size\": 4"));
    memest_text_destroy(text);
    assert_int_equal(
        memest_report_text(report, MEMEST_FORMAT_CHECK, &text, NULL, error),
        MEMEST_OK);
    memest_text_destroy(text);
    assert_int_equal(
        memest_report_text(report, (memest_format)99, &text, NULL, error),
        MEMEST_ERR_CONFIG);
    memest_error_destroy(error);
    memest_report_destroy(report);
    memest_job_destroy(job);
}

static void test_api_report__options(void **state)
{
    (void)state;
    static const char *const words[] = {"--no-such-flag-known"};
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_report *report = NULL;
    memest_estimate_options options = MEMEST_INIT(memest_estimate_options);
    options.strict = true;
    if (memest_job_read_launch(job, 1, words, error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    assert_int_equal(memest_estimate(job, &options, &report, error),
                     MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), words[0]));
    options.struct_size = 0;
    assert_int_equal(memest_estimate(job, &options, &report, error),
                     MEMEST_ERR_CONFIG);
    assert_null(report);

    report = estimate(job);
    assert_string_equal(memest_report_not_modelled(report, 0), words[0]);
    assert_null(memest_report_not_modelled(report, 1000));
    assert_null(memest_report_not_modelled_note(report, 1000));
    assert_null(memest_report_assumption(report, 1000));
    memest_report_destroy(report);
    memest_error_destroy(error);
    memest_job_destroy(job);
}

static void test_api_report__names(void **state)
{
    (void)state;
    assert_string_equal(memest_category_name(MEMEST_CATEGORY_OPTIMIZER_STATE),
                        "optimizer_state");
    assert_string_equal(memest_category_name(MEMEST_CATEGORY_OTHER), "other");
    assert_string_equal(memest_phase_name(MEMEST_PHASE_GRADIENT_REDUCTION),
                        "gradient_reduction");
    assert_null(memest_category_name(MEMEST_CATEGORY_COUNT));
    assert_null(memest_phase_name((memest_phase)-1));
    assert_string_equal(memest_status_text(MEMEST_OK), "ok");
    assert_int_equal(memest_version()[0] - '0', MEMEST_VERSION_MAJOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_report__ranks),
        cmocka_unit_test(test_api_report__peak_adds_up),
        cmocka_unit_test(test_api_report__records_have_sizes),
        cmocka_unit_test(test_api_report__points_and_modules),
        cmocka_unit_test(test_api_report__verdict),
        cmocka_unit_test(test_api_report__text),
        cmocka_unit_test(test_api_report__options),
        cmocka_unit_test(test_api_report__names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
