/**
 * @file
 * The job that a command line describes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_COMMAND_JOB_H
#define MEMEST_APP_COMMAND_JOB_H

#include "app/cli.h"
#include "config/config.h"

/**
 * As me_job_read(), without finishing the job: it can be copied and varied.
 * Local.
 */
me_status me_job_read_unfinished(const me_cli *cli, me_config *config,
                                 me_diag *diag) ME_MUST_CHECK;

/**
 * Read defaults, file, launch command, flags and `--set`, in that order, and
 * finish the job. Local.
 *
 * @param num_processes  of memest itself: a world size where nothing gives one
 * @param config         fresh; what it holds after a failure is of no use
 * @return ME_OK, or what the first wrong value deserves; ME_ERR_NOMEM
 */
me_status me_job_read(const me_cli *cli, int32_t num_processes,
                      me_config *config, me_diag *diag) ME_MUST_CHECK;

/** The second half of me_job_read(). Local. */
me_status me_job_finish(const me_cli *cli, int32_t num_processes,
                        me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_COMMAND_JOB_H */
