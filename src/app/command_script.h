/**
 * @file
 * The launch command that a script holds: what the user named is run where
 * nothing can happen (script/script_run.h), and one of its launches taken.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_COMMAND_SCRIPT_H
#define MEMEST_APP_COMMAND_SCRIPT_H

#include "app/cli.h"
#include "base/arena.h"

#include <stdint.h>

/** A launch command as me_config_read_launch() takes it, variables first. */
typedef struct me_launch_words {
    int argc;
    const char *const *argv; /**< borrowed from the arena or the command line */
    int n_variables;         /**< NAME=VALUE in front, of the environment */
    uint32_t number;         /**< of the launch among the script's jobs */
    uint32_t n_jobs;         /**< that the script launches; 0: it is none */
    const char *mute;        /**< me_script_mute() of its script; NULL: none */
    const char *script;      /**< the file's name; NULL: there is none */
    const char *script_text; /**< before it ran; NULL: there is none */
    me_arena *arena;         /**< or NULL */
} me_launch_words;

/**
 * The words of the job's launch command: those of the command line, or of the
 * launch that the script makes which they start. Local; runs the script.
 *
 * @param words_out  for me_launch_words_fini(), also on failure
 * @return ME_OK; ME_ERR_CONFIG naming the script and why, as me_script_run(),
 *         or where it launches several jobs and --launch picks none;
 *         ME_ERR_IO; ME_ERR_NOMEM
 */
me_status me_launch_words_find(const me_cli *cli, me_diag *diag,
                               me_launch_words *words_out) ME_MUST_CHECK;

void me_launch_words_fini(me_launch_words *words);

#endif /* MEMEST_APP_COMMAND_SCRIPT_H */
