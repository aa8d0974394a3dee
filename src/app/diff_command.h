/**
 * @file
 * `memest diff`: two files that say what memory took, compared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_DIFF_COMMAND_H
#define MEMEST_APP_DIFF_COMMAND_H

#include "app/cli.h"

/**
 * Compare. Local.
 *
 * @param shows_progress  on a terminal, see base/progress.h
 * @param text            the report is appended
 * @param differs_out     set to true if a number differs by more than --within
 * @return ME_OK; ME_ERR_CONFIG, ME_ERR_SYNTAX; ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_diff_command(const me_cli *cli, bool shows_progress, me_diag *diag,
                          me_str *text, bool *differs_out) ME_MUST_CHECK;

#endif /* MEMEST_APP_DIFF_COMMAND_H */
