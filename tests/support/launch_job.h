/**
 * @file
 * A job of a launch command in one text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_LAUNCH_JOB_H
#define MEMEST_TESTS_SUPPORT_LAUNCH_JOB_H

#include "support/simulate.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    TEST_LAUNCH_WORDS = 100,
    TEST_LAUNCH_TEXT = 4096
};

/** Read @p launch, words with one blank between, for a job of @p world ranks. */
static inline me_status test_job_read_launch(me_config *config,
                                             const char *launch, int32_t world,
                                             me_diag *diag)
{
    char text[TEST_LAUNCH_TEXT];
    char size[64];
    const char *words[TEST_LAUNCH_WORDS];
    int count = 0;
    assert_true(strlen(launch) < sizeof text);
    memcpy(text, launch, strlen(launch) + 1);
    for (char *at = text; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        assert_true(count < TEST_LAUNCH_WORDS);
        words[count++] = at;
        at += n;
        if (*at == ' ') {
            *at++ = '\0';
        }
    }
    const me_status status = me_config_read_launch(config, count, words, diag);
    (void)snprintf(size, sizeof size, "parallel.world_size=%d", world);
    return status == ME_OK ? me_config_set_assignment(config, size, diag)
                           : status;
}

/** The same, planned. A failure is the test's. */
static inline void test_job_of_launch(test_job *job, const char *launch,
                                      int32_t world)
{
    me_diag diag = {.status = ME_OK};
    *job = (test_job){.config = me_config_create()};
    assert_non_null(job->config);
    me_status status = test_job_read_launch(job->config, launch, world, &diag);
    if (status == ME_OK) {
        status = test_job_plan(job, &diag);
    }
    if (status != ME_OK) {
        fail_msg("%s", diag.text);
    }
}

#endif /* MEMEST_TESTS_SUPPORT_LAUNCH_JOB_H */
