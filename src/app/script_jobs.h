/**
 * @file
 * Which of a script's launches are jobs, and the one that is asked for. Launches
 * that differ only in where they run are one job's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_SCRIPT_JOBS_H
#define MEMEST_APP_SCRIPT_JOBS_H

#include "script/script_run.h"

#include <stdint.h>

/** A job of a script. */
typedef struct me_script_job {
    const me_script_launch *launch; /**< borrowed from the script */
    uint32_t number;                /**< among its jobs, from 1 */
    uint32_t n_jobs;                /**< of the script */
} me_script_job;

/**
 * Take one of a script's jobs, and tell of all of them. Local.
 *
 * @param name   of the script, for messages
 * @param asked  the job's number; 0: the script has but one
 * @return ME_OK; ME_ERR_CONFIG: it launches several and none is asked for, with
 *         what differs, or fewer than @p asked, or it ended before any
 */
me_status me_script_job_pick(const me_script *script, const char *name,
                             uint32_t asked, me_diag *diag,
                             me_script_job *job_out) ME_MUST_CHECK;

#endif /* MEMEST_APP_SCRIPT_JOBS_H */
