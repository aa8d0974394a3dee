/**
 * @file
 * A job that tests of the API estimate: small, but of several ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_SMALL_JOB_H
#define MEMEST_TESTS_SUPPORT_SMALL_JOB_H

#include "memest/memest.h"

enum {
    SMALL_JOB_RANKS = 4
};

/** Tensor 2 by pipeline 2, recomputed; NULL without memory. The caller's. */
memest_job *me_small_job_create(memest_error *error);

#endif /* MEMEST_TESTS_SUPPORT_SMALL_JOB_H */
