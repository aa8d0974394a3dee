/**
 * @file
 * A random valid job, as assignments over configs/gpt.cfg: small, and with as
 * many of the options that shape a program as go together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_RANDOM_ASSIGNMENTS_H
#define MEMEST_TESTS_SUPPORT_RANDOM_ASSIGNMENTS_H

#include "support/random.h"

#include <stdint.h>

enum {
    RANDOM_JOB_SETS = 64,
    RANDOM_JOB_MAX_RANKS = 32
};

/** The job; `sets` are as --set takes them. */
typedef struct random_job {
    int32_t world;
    int n_sets;
    char sets[RANDOM_JOB_SETS][80];
} random_job;

/** Draw a job of at most RANDOM_JOB_MAX_RANKS ranks. Not every one is valid:
 *  me_config_finish() decides. Local. */
void me_random_job_draw(me_random *random, random_job *job_out);

#endif /* MEMEST_TESTS_SUPPORT_RANDOM_ASSIGNMENTS_H */
