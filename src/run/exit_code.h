/**
 * @file
 * What memest returns to the shell: scripts decide by it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_EXIT_CODE_H
#define MEMEST_RUN_EXIT_CODE_H

#include "base/status.h"
#include "report/job_report.h"

/** Exit codes of the program. */
enum {
    ME_EXIT_OK = 0,
    ME_EXIT_INTERNAL = 1,
    ME_EXIT_USAGE = 2,
    ME_EXIT_DOES_NOT_FIT = 3, /**< or is too close to call */
    ME_EXIT_CANNOT_SAY = 4    /**< too much of it is not modelled */
};

/** The exit code for a failure. */
int me_exit_code(me_status status);

/** The exit code for a verdict that is asked for. Local. */
int me_exit_code_of(const me_verdict *verdict);

#endif /* MEMEST_RUN_EXIT_CODE_H */
