/**
 * @file
 * `memest schedule`: a pipeline's order without a job, drawn and counted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_SCHEDULE_COMMAND_H
#define MEMEST_APP_SCHEDULE_COMMAND_H

#include "app/cli.h"
#include "base/str.h"

/**
 * The text of `memest schedule NAME|FILE.csv`. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG, ME_ERR_SYNTAX or ME_ERR_IO for what cannot be
 *         run or read, with name or file; ME_ERR_NOMEM
 */
me_status me_schedule_command(const me_cli *cli, me_diag *diag,
                              me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_APP_SCHEDULE_COMMAND_H */
