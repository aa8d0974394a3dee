/**
 * @file
 * Options as the words that a user puts into what launches the job: flags of
 * Megatron-LM's and variables of the environment, or memest's own `--set`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_PASTE_H
#define MEMEST_CONFIG_PASTE_H

#include "base/str.h"
#include "config/config.h"

/** How options are said beside the words that gave the job. */
typedef enum me_paste_form {
    ME_PASTE_SET,       /**< `--set KEY=VALUE` of memest's */
    ME_PASTE_MEGATRON,  /**< flags of Megatron-LM's */
    ME_PASTE_TORCHTITAN /**< `--table.key VALUE` */
} me_paste_form;

/**
 * Append what sets options beside those of a job. Of a job that a launch command
 * of Megatron-LM's or torchtitan's gave these are its flags, after it; "(without
 * --FLAG)" names a flag or variable that has to go, `NAME=VALUE` at the beginning
 * a variable that goes before the command, and "(on N ranks)" what the launcher
 * has to say, where nothing said it. Of any other job it is `--set KEY=VALUE` of
 * memest's. Local.
 *
 * @param config  the finished job with the options set
 * @param sets    n_sets of "KEY=VALUE"
 */
void me_paste_append(const me_config *config, const char *const *sets,
                     int32_t n_sets, me_str *text);

/** The same as flags, whoever gave the job: for a launch command that is still
 *  to be written; the world size is the launcher's and left out. Local. */
void me_paste_append_flags(const me_config *config, const char *const *sets,
                           int32_t n_sets, me_str *text);

#endif /* MEMEST_CONFIG_PASTE_H */
