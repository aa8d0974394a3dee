/**
 * @file
 * What a command writes is no file that it reads, nor two things at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_APART_H
#define MEMEST_APP_APART_H

#include "app/cli.h"

/**
 * Check the files of --output, --events and --log-file against each other, and
 * have every file that is read held against them when it is opened. Before the
 * log's file is opened. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG naming the flags and the file
 */
me_status me_outputs_keep_apart(const me_cli *cli, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_APART_H */
