/**
 * @file
 * Jobs of tests/trackers under PyTorch's tools, through the public API.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_TRACKED_H
#define MEMEST_TESTS_SUPPORT_TRACKED_H

#include "memest/memest.h"

/** The job of a file, by its name without folder and ending; the caller's. */
memest_job *me_tracked_job(const char *name);

/** A tool of iteration 1; the caller's. */
memest_tracker *me_tracked_create(memest_tool tool, bool as_memtracker);

/** Run rank 0 of such a job; fails the test where that fails. @param observer
 *  NULL: none */
void me_tracked_run(const char *name, memest_tracker *tracker,
                    const memest_observer *observer);

#endif /* MEMEST_TESTS_SUPPORT_TRACKED_H */
