/**
 * @file
 * `memest options`: every option, and what memest makes of a framework's flags.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_OPTIONS_COMMAND_H
#define MEMEST_APP_OPTIONS_COMMAND_H

#include "app/cli.h"

/**
 * Append all options, or those that have a word in name or help and the flags
 * of Megatron-LM that have it in theirs. Local.
 *
 * @param text  appended to
 * @return ME_OK; ME_ERR_CONFIG for a word that none has, or another format
 */
me_status me_options_command(const me_cli *cli, me_diag *diag,
                             me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_APP_OPTIONS_COMMAND_H */
