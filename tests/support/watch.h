/**
 * @file
 * A job of a file whose first rank is simulated while something watches it, as
 * `memest track` does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_WATCH_H
#define MEMEST_TESTS_SUPPORT_WATCH_H

#include "config/file.h"
#include "support/simulate.h"
#include "support/test.h"

/** As test_job_watch(), of any rank. */
static inline void test_job_watch_rank(const char *path,
                                       const char *const *sets, int32_t rank,
                                       const me_watcher *watcher, test_job *job)
{
    me_diag diag = {.status = ME_OK};
    *job = (test_job){.config = me_config_create()};
    assert_non_null(job->config);
    assert_int_equal(me_config_read_file(job->config, path, &diag), ME_OK);
    assert_int_equal(test_job_set(job, sets, &diag), ME_OK);
    assert_int_equal(test_job_plan(job, &diag), ME_OK);
    if (me_simulate_watched(job->plan, &job->card, rank, watcher, &diag) !=
        ME_OK) {
        fail_msg("%s", diag.text);
    }
}

/**
 * Read, plan and run it; a failure ends the test.
 *
 * @param sets  options as `--set` takes them, up to a NULL
 * @param job   for test_job_fini(), once the caller's watchers are gone
 */
static inline void test_job_watch(const char *path, const char *const *sets,
                                  const me_watcher *watcher, test_job *job)
{
    test_job_watch_rank(path, sets, 0, watcher, job);
}

#endif /* MEMEST_TESTS_SUPPORT_WATCH_H */
