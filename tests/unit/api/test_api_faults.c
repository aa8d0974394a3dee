/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library hands out with one request for host memory failing: with all
 * that follow each call must say so and leave nothing behind; where it fails
 * alone the answer may also be the one of an undisturbed call, to the byte. */
#include "base/alloc.h"
#include "support/lost.h"
#include "support/small_job.h"
#include "support/test.h"
#include "support/tracked.h"

#include <stdlib.h>
#include <string.h>

enum {
/* Each step is a STEP-th of the way longer; EACH requests of a name. */
#ifdef __SANITIZE_ADDRESS__
    STEP = 4, /* a run takes ten times as long */
    EACH = 1,
#else
    STEP = 12,
    EACH = 2,
#endif
    MOST = 1000000
};

/** What is tried, from a job to its text. @return its status */
typedef memest_status scenario(const memest_job *job, char **text_out,
                               memest_error *error);

static memest_status estimate(const memest_job *job, char **text_out,
                              memest_error *error)
{
    memest_estimate_options options = MEMEST_INIT(memest_estimate_options);
    memest_report *report = NULL;
    memest_status status = memest_estimate(job, &options, &report, error);
    if (status == MEMEST_OK) {
        status = memest_report_text(report, MEMEST_FORMAT_TEXT, text_out, NULL,
                                    error);
    }
    memest_report_destroy(report);
    return status;
}

static memest_status compare(const memest_job *job, char **text_out,
                             memest_error *error)
{
    static const char *const schedules[] = {"1f1b", "interleaved:2"};
    static const char *const variants[] = {"odd:parallel.tensor=3"};
    memest_compare_options options = MEMEST_INIT(memest_compare_options);
    memest_comparison *comparison = NULL;
    options.schedules = schedules;
    options.n_schedules = 2;
    options.variants = variants;
    options.n_variants = 1;
    memest_status status = memest_compare(job, &options, &comparison, error);
    if (status == MEMEST_OK) {
        status = memest_comparison_text(comparison, MEMEST_FORMAT_CSV, false,
                                        text_out, NULL, error);
    }
    memest_comparison_destroy(comparison);
    return status;
}

static memest_status search(const memest_job *job, char **text_out,
                            memest_error *error)
{
    static const char *const spaces[] = {"train.micro_batch_size=1,2",
                                         "parallel.tensor=2"};
    memest_search_options options = MEMEST_INIT(memest_search_options);
    memest_found *found = NULL;
    options.spaces = spaces;
    options.n_spaces = 2;
    options.threads = 1;
    memest_status status = memest_search(job, &options, &found, error);
    if (status == MEMEST_OK) {
        status =
            memest_found_text(found, MEMEST_FORMAT_CSV, text_out, NULL, error);
    }
    memest_found_destroy(found);
    return status;
}

static memest_status fit(const memest_job *job, char **text_out,
                         memest_error *error)
{
    memest_fit_options options = MEMEST_INIT(memest_fit_options);
    memest_fitting *fitting = NULL;
    options.is_quick = true;
    memest_status status = memest_fit(job, &options, &fitting, error);
    if (status == MEMEST_OK) {
        status = memest_fitting_text(fitting, MEMEST_FORMAT_JSON, text_out,
                                     NULL, error);
    }
    memest_fitting_destroy(fitting);
    return status;
}

static int look(void *self, const memest_module_event *event)
{
    (void)event;
    ++*(int *)self;
    return 0;
}

static memest_status track(memest_tool tool, const memest_job *job,
                           char **text_out, memest_error *error)
{
    int n_looks = 0;
    memest_tracker *tracker = NULL;
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    memest_observer observer = MEMEST_INIT(memest_observer);
    const memest_observer *observers[] = {&observer};
    options.tool = tool;
    observer.self = &n_looks;
    observer.pre_backward = look;
    memest_status status = memest_tracker_create(&options, &tracker, error);
    if (status == MEMEST_OK) {
        status = memest_track(job, 0, tracker, observers, 1, error);
    }
    if (status == MEMEST_OK) {
        status = memest_tracker_text(tracker, NULL, text_out, error);
    }
    memest_tracker_destroy(tracker);
    return status;
}

static memest_status track_mem(const memest_job *job, char **text_out,
                               memest_error *error)
{
    return track(MEMEST_TOOL_MEM, job, text_out, error);
}

static memest_status track_mod(const memest_job *job, char **text_out,
                               memest_error *error)
{
    return track(MEMEST_TOOL_MOD, job, text_out, error);
}

static memest_status track_memory(const memest_job *job, char **text_out,
                                  memest_error *error)
{
    return track(MEMEST_TOOL_MEMORY, job, text_out, error);
}

/** @return whether request number @p nth was made, and so failed */
static bool fail_at(scenario *run, const memest_job *job, uint64_t nth)
{
    char *text = NULL;
    memest_error *error = memest_error_create();
    assert_non_null(error);
    me_alloc_fail_at(nth);
    const memest_status status = run(job, &text, error);
    const bool has_failed = me_alloc_count() >= nth;
    me_alloc_fail_at(0);
    const memest_status expected = has_failed ? MEMEST_ERR_NOMEM : MEMEST_OK;
    if (status != expected ||
        (has_failed && memest_error_text(error)[0] == '\0')) {
        fail_msg("request %llu: \"%s\", \"%s\"", (unsigned long long)nth,
                 memest_status_text(status), memest_error_text(error));
    }
    memest_error_destroy(error);
    memest_text_destroy(text);
    return has_failed;
}

/** Request number @p nth fails, and those behind it do not. */
static void fail_once(scenario *run, const memest_job *job, const char *right,
                      uint64_t nth)
{
    char *text = NULL;
    memest_error *error = memest_error_create();
    assert_non_null(error);
    me_alloc_fail_once(nth);
    const memest_status status = run(job, &text, error);
    me_alloc_fail_at(0);
    if (status == MEMEST_OK ? strcmp(text, right) != 0
                            : status != MEMEST_ERR_NOMEM) {
        fail_msg("request %llu (%s) once: \"%s\", \"%s\", %s",
                 (unsigned long long)nth, me_alloc_lost_name(),
                 memest_status_text(status), memest_error_text(error),
                 text == NULL ? "no text" : text);
    }
    memest_error_destroy(error);
    memest_text_destroy(text);
}

/** A few requests of each name. */
static void sweep_names(scenario *run, const memest_job *job)
{
    static me_lost_names names;
    const char *given = getenv("ME_LOST");
    char *right = NULL;
    size_t n = 0;
    me_lost_begin(&names);
    me_alloc_fail_at(0);
    const memest_status status = run(job, &right, NULL);
    me_lost_end();
    assert_int_equal(status, MEMEST_OK);
    uint64_t *chosen = me_lost_choose(
        &names, given == NULL ? EACH : strtoull(given, NULL, 10), &n);
    assert_in_range(n, 10, MOST);
    for (size_t i = 0; i < n; i++) {
        fail_once(run, job, right, chosen[i]);
    }
    free(chosen);
    me_lost_fini(&names);
    memest_text_destroy(right);
}

static void sweep(scenario *run, memest_job *job)
{
    uint64_t nth = 1;
    while (nth < MOST && fail_at(run, job, nth)) {
        nth += 1 + nth / STEP;
    }
    assert_in_range(nth, 50, MOST - 1);
    sweep_names(run, job);
    memest_job_destroy(job);
}

static void test_api_faults__estimate(void **state)
{
    (void)state;
    sweep(estimate, me_small_job_create(NULL));
}

static void test_api_faults__search(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    assert_int_equal(memest_job_set(job, "device.name", "h100-80gb", NULL),
                     MEMEST_OK);
    sweep(search, job);
}

static void test_api_faults__compare(void **state)
{
    (void)state;
    sweep(compare, me_small_job_create(NULL));
}

static void test_api_faults__fit(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    assert_int_equal(memest_job_set(job, "device.memory_limit", "2MiB", NULL),
                     MEMEST_OK);
    sweep(fit, job);
}

static void test_api_faults__track(void **state)
{
    (void)state;
    sweep(track_mem, me_tracked_job("mem_tracker"));
    sweep(track_mod, me_tracked_job("mem_tracker"));
    sweep(track_memory, me_tracked_job("memory_tracker"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_faults__estimate),
        cmocka_unit_test(test_api_faults__compare),
        cmocka_unit_test(test_api_faults__search),
        cmocka_unit_test(test_api_faults__fit),
        cmocka_unit_test(test_api_faults__track),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
