/**
 * @file
 * What a shell is given to run what the user named: a script, or a launch command
 * that starts one. What becomes of it is not known here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_SCRIPT_WORDS_H
#define MEMEST_APP_SCRIPT_WORDS_H

#include "app/cli.h"
#include "base/arena.h"

/** A command line; its words are borrowed. */
typedef struct me_script_words {
    const char **argv;
    int argc;
} me_script_words;

/** Does the job have to be run to be known: is it a script, or a command that
 *  starts one, or that is to be stepped through? Local. */
bool me_script_is_acted(const me_cli *cli);

/**
 * The words of what me_script_is_acted(): the shell that a file names, or sbatch,
 * before a file; a shell before a launch command. Local.
 *
 * @param words_out  made in @p arena
 * @return ME_OK; ME_ERR_CONFIG naming a file that is missing, irregular, or no
 *         script of a shell's; ME_ERR_NOMEM
 */
me_status me_script_words_of(const me_cli *cli, me_arena *arena, me_diag *diag,
                             me_script_words *words_out) ME_MUST_CHECK;

#endif /* MEMEST_APP_SCRIPT_WORDS_H */
