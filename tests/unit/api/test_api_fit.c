/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/small_job.h"
#include "support/test.h"

#include <string.h>

/* Of which activations are most: smaller micro-batches help. */
static const char text[] =
    "model = { num_layers = 2; hidden_size = 64; num_attention_heads = 4;\n"
    "          seq_length = 256; vocab_size = 500; };\n"
    "parallel = { world_size = 2; };\n"
    "train = { micro_batch_size = 8; global_batch_size = 16;\n"
    "          params_dtype = \"bfloat16\"; };\n"
    "impl = { transformer = \"local\"; core_attention = \"unfused\"; };\n";

static memest_job *job_within(const char *limit)
{
    memest_job *job = memest_job_create();
    assert_int_equal(
        memest_job_read_text(job, "job", text, sizeof text - 1, NULL),
        MEMEST_OK);
    assert_int_equal(memest_job_set(job, "device.memory_limit", limit, NULL),
                     MEMEST_OK);
    return job;
}

static memest_fitting *fit(const char *limit)
{
    memest_job *job = job_within(limit);
    memest_error *error = memest_error_create();
    memest_fitting *fitting = NULL;
    if (memest_fit(job, NULL, &fitting, error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    memest_job_destroy(job); /* what was found does not need it */
    return fitting;
}

/** No value here has a comma. */
static void set_all(memest_job *job, const char *assignments)
{
    while (*assignments != '\0') {
        char key[64] = "";
        char value[64] = "";
        const size_t n = strcspn(assignments, "=");
        const size_t end = strcspn(assignments, ",");
        assert_true(n < end && n < sizeof key && end - n <= sizeof value);
        memcpy(key, assignments, n);
        memcpy(value, assignments + n + 1, end - n - 1);
        assert_int_equal(memest_job_set(job, key, value, NULL), MEMEST_OK);
        assignments += end + (assignments[end] == ',');
    }
}

/* Each change makes the job fit by itself, with the bytes that were said. */
static void test_api_fit__changes_hold(void **state)
{
    (void)state;
    memest_fitting *fitting = fit("180MiB");
    memest_fit_counts counts = MEMEST_INIT(memest_fit_counts);
    memest_verdict verdict = MEMEST_INIT(memest_verdict);
    assert_true(
        memest_report_verdict(memest_fitting_report(fitting), &verdict));
    assert_false(verdict.lets_go);
    assert_true(memest_fitting_count(fitting, &counts));
    const size_t n = memest_fitting_n_changes(fitting);
    assert_true(counts.has_searched && counts.together == 1 && n > 0);
    assert_null(counts.closest);
    assert_int_equal(counts.tried, counts.refused + counts.do_not_fit +
                                       counts.equal + counts.not_simulated +
                                       (int)n);
    for (size_t i = 0; i < n; i++) {
        memest_fit_change change = MEMEST_INIT(memest_fit_change);
        memest_report *report = NULL;
        assert_true(memest_fitting_change(fitting, i, &change));
        assert_non_null(change.name);
        assert_non_null(strstr(change.flags, "--set "));
        assert_true(change.worst_bytes <= change.capacity_bytes);
        memest_job *job = job_within("180MiB");
        set_all(job, change.assignments);
        assert_int_equal(memest_estimate(job, NULL, &report, NULL), MEMEST_OK);
        assert_true(memest_report_verdict(report, &verdict));
        assert_true(verdict.lets_go);
        assert_true(verdict.worst_bytes == change.worst_bytes);
        assert_true(memest_report_verdict(
            memest_fitting_change_report(fitting, i), &verdict));
        assert_true(verdict.worst_bytes == change.worst_bytes);
        memest_report_destroy(report);
        memest_job_destroy(job);
    }
    memest_fit_change none = MEMEST_INIT(memest_fit_change);
    assert_false(memest_fitting_change(fitting, n, &none));
    assert_null(memest_fitting_change_report(fitting, n));
    memest_fitting_destroy(fitting);
}

static void test_api_fit__leaves_what_fits(void **state)
{
    (void)state;
    memest_fitting *fitting = fit("2GiB");
    memest_fit_counts counts = MEMEST_INIT(memest_fit_counts);
    assert_true(memest_fitting_count(fitting, &counts));
    assert_false(counts.has_searched);
    assert_int_equal(counts.tried, 0);
    assert_int_equal(memest_fitting_n_changes(fitting), 0);
    memest_fitting_destroy(fitting);
}

static void test_api_fit__names_the_nearest(void **state)
{
    (void)state;
    memest_fitting *fitting = fit("2MiB");
    memest_fit_counts counts = MEMEST_INIT(memest_fit_counts);
    assert_true(memest_fitting_count(fitting, &counts));
    assert_true(counts.has_searched);
    assert_int_equal(memest_fitting_n_changes(fitting), 0);
    assert_int_equal(counts.together, 0);
    assert_non_null(counts.closest);
    assert_true(counts.closest_bytes > 2 * 1024 * 1024);
    memest_fitting_destroy(fitting);
}

static void test_api_fit__writes_text_and_json(void **state)
{
    (void)state;
    memest_fitting *fitting = fit("180MiB");
    char *made = NULL;
    size_t length = 0;
    assert_int_equal(
        memest_fitting_text(fitting, MEMEST_FORMAT_TEXT, &made, &length, NULL),
        MEMEST_OK);
    assert_int_equal(strlen(made), length);
    assert_non_null(strstr(made, "What makes it fit"));
    memest_text_destroy(made);
    assert_int_equal(
        memest_fitting_text(fitting, MEMEST_FORMAT_JSON, &made, NULL, NULL),
        MEMEST_OK);
    assert_non_null(strstr(made, "\"changes\": ["));
    memest_text_destroy(made);
    assert_int_equal(
        memest_fitting_text(fitting, MEMEST_FORMAT_CSV, &made, NULL, NULL),
        MEMEST_ERR_CONFIG);
    memest_fitting_destroy(fitting);
}

static void test_api_fit__refuses(void **state)
{
    (void)state;
    memest_fit_options options = MEMEST_INIT(memest_fit_options);
    memest_job *job = job_within("180MiB");
    memest_error *error = memest_error_create();
    memest_fitting *fitting = NULL;
    options.struct_size = 1;
    assert_int_equal(memest_fit(job, &options, &fitting, error),
                     MEMEST_ERR_CONFIG);
    assert_int_equal(memest_job_set(job, "parallel.tensor", "3", NULL),
                     MEMEST_OK);
    assert_int_equal(memest_fit(job, NULL, &fitting, error), MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), "parallel.tensor"));
    assert_null(fitting);
    memest_error_destroy(error);
    memest_job_destroy(job);
    memest_fitting_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_fit__changes_hold),
        cmocka_unit_test(test_api_fit__leaves_what_fits),
        cmocka_unit_test(test_api_fit__names_the_nearest),
        cmocka_unit_test(test_api_fit__writes_text_and_json),
        cmocka_unit_test(test_api_fit__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
