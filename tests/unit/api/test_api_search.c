/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/small_job.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const spaces[] = {"parallel.pipeline=1,2",
                                     "train.micro_batch_size=1,2",
                                     "recompute=none,full"};

static memest_search_options all_options(void)
{
    memest_search_options options = MEMEST_INIT(memest_search_options);
    options.gpus = "4";
    options.spaces = spaces;
    options.n_spaces = sizeof spaces / sizeof spaces[0];
    return options;
}

static memest_found *search(const memest_search_options *options)
{
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_found *found = NULL;
    if (memest_search(job, options, &found, error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    memest_job_destroy(job); /* what was found does not need it */
    return found;
}

/** What a hook has seen. */
typedef struct seen {
    int n;
    int stop_at; /**< 0: never */
} seen;

static int see(void *self, const memest_candidate *candidate,
               uint32_t n_decided, uint32_t n_candidates)
{
    seen *s = self;
    assert_non_null(candidate->assignments);
    assert_null(candidate->flags);
    assert_true(candidate->struct_size == sizeof *candidate);
    assert_true(n_decided <= n_candidates);
    assert_true(candidate->reason != NULL || candidate->has_step);
    s->n++;
    return s->n == s->stop_at;
}

/** Options as a row has them. */
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

/* The rows are those that a job set alike has alone. */
static void test_api_search__rows(void **state)
{
    (void)state;
    seen s = {0};
    memest_search_options options = all_options();
    options.hook = see;
    options.hook_self = &s;
    memest_found *found = search(&options);
    memest_found_counts counts = MEMEST_INIT(memest_found_counts);
    assert_true(memest_found_count(found, &counts));
    assert_int_equal(counts.candidates, counts.refused + counts.simulated +
                                            counts.behind + counts.too_large);
    assert_true(s.n >= (int)counts.simulated);
    assert_true(memest_found_n_rows(found) > 0);
    double step = 0;
    for (size_t i = 0; i < memest_found_n_rows(found); i++) {
        memest_candidate row = MEMEST_INIT(memest_candidate);
        memest_peak peak = MEMEST_INIT(memest_peak);
        memest_report *report = NULL;
        assert_true(memest_found_row(found, i, &row));
        assert_true(row.fits && row.step >= step && row.place > 0);
        step = row.step;
        memest_job *job = me_small_job_create(NULL);
        set_all(job, row.assignments);
        assert_int_equal(memest_estimate(job, NULL, &report, NULL), MEMEST_OK);
        assert_true(memest_report_peak(report, row.worst_rank, &peak));
        assert_true(peak.requested_bytes <= row.requested_bytes);
        assert_int_equal(memest_report_world_size(report), 4);
        memest_report_destroy(report);
        memest_job_destroy(job);
    }
    memest_candidate none = MEMEST_INIT(memest_candidate);
    assert_false(memest_found_row(found, memest_found_n_rows(found), &none));
    memest_found_destroy(found);
}

/* A hook stops it, and a log goes on with it: to the same text. */
static void test_api_search__stops_and_goes_on(void **state)
{
    (void)state;
    char path[] = "/tmp/memest-jsonl-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    memest_search_options options = all_options();
    memest_found *whole = search(&options);
    seen s = {.stop_at = 1};
    options.hook = see;
    options.hook_self = &s;
    options.jsonl = path;
    memest_found_destroy(search(&options));
    s = (seen){.n = 0};
    memest_found *found = search(&options);
    char *texts[2] = {NULL, NULL};
    assert_int_equal(
        memest_found_text(whole, MEMEST_FORMAT_JSON, &texts[0], NULL, NULL),
        MEMEST_OK);
    assert_int_equal(
        memest_found_text(found, MEMEST_FORMAT_JSON, &texts[1], NULL, NULL),
        MEMEST_OK);
    assert_string_equal(texts[0], texts[1]);
    memest_text_destroy(texts[0]);
    memest_text_destroy(texts[1]);
    memest_found_destroy(whole);
    memest_found_destroy(found);
    (void)unlink(path);
}

static void test_api_search__refuses(void **state)
{
    (void)state;
    static const char *const wrong[] = {"recompute=some"};
    memest_job *job = me_small_job_create(NULL);
    memest_error *error = memest_error_create();
    memest_found *found = NULL;
    memest_search_options options = all_options();
    options.spaces = wrong;
    options.n_spaces = 1;
    assert_int_equal(memest_search(job, &options, &found, error),
                     MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), "recompute=some"));
    options.struct_size = 1;
    assert_int_equal(memest_search(job, &options, &found, error),
                     MEMEST_ERR_CONFIG);
    assert_null(found);
    memest_error_destroy(error);
    memest_job_destroy(job);
    memest_found_destroy(NULL);
}

static void test_api_search__text(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    const memest_search_options options = all_options();
    memest_found *found = search(&options);
    assert_int_equal(
        memest_found_text(found, MEMEST_FORMAT_TEXT, &text, &length, NULL),
        MEMEST_OK);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, "candidates: "));
    memest_text_destroy(text);
    assert_int_equal(
        memest_found_text(found, MEMEST_FORMAT_HTML, &text, NULL, NULL),
        MEMEST_ERR_CONFIG);
    memest_found_destroy(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_search__rows),
        cmocka_unit_test(test_api_search__stops_and_goes_on),
        cmocka_unit_test(test_api_search__refuses),
        cmocka_unit_test(test_api_search__text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
