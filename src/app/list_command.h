/**
 * @file
 * `memest list`: what comes with memest and is asked for by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_LIST_COMMAND_H
#define MEMEST_APP_LIST_COMMAND_H

#include "app/cli.h"

/**
 * Append the list that the command line asks for. Local.
 *
 * @param text  appended to
 * @return ME_OK; ME_ERR_CONFIG for a list that there is not, or a file of it
 *         that cannot be read; ME_ERR_NOMEM
 */
me_status me_list_command(const me_cli *cli, me_diag *diag,
                          me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_APP_LIST_COMMAND_H */
