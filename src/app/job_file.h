/**
 * @file
 * A job's file where a script is looked for: `memest check job.toml` means
 * `memest check --model job.toml`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_JOB_FILE_H
#define MEMEST_APP_JOB_FILE_H

#include "app/cli.h"

/**
 * Take the script's word as --model, where its name ends as a job's file does
 * (`.cfg`, `.toml`, `.json`, `.yaml`, `.yml`) and it is no program: it is not
 * executable and does not begin with `#!`. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG for one that is executable, for one beside --model,
 *         and for a missing file whose name is that of a known model
 */
me_status me_job_file_take(me_cli *cli, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_JOB_FILE_H */
