/**
 * @file
 * What a program that starts others leaves of the environment: containers have
 * none but what their options say, Slurm's --export picks, others pass all on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_INHERIT_H
#define MEMEST_SCRIPT_INHERIT_H

#include "base/str.h"

#include <stdbool.h>

/** What is to become of this process's environment; all zero: it stays. */
typedef struct me_inherit {
    bool is_clean;     /**< nothing of it is passed on */
    bool passes_all;   /**< … after all */
    const char *wrong; /**< a file of variables that cannot be read, borrowed */
    me_str files;      /**< NAME=VALUE of files, a NUL behind each */
    me_str sets;       /**< of options, which win */
} me_inherit;

/** What a program does by itself, and by variables of its own. @p program
 *  without its path. */
void me_inherit_begin(me_inherit *inherit, const char *program);

/**
 * Take a word of a program's, if it is an option that has to do with variables.
 *
 * @param argc  words from @p argv on, at least 1
 * @return the words that it has, with its value
 */
int me_inherit_option(me_inherit *inherit, const char *program, int argc,
                      char *const *argv);

/** Take a list of `NAME=VALUE` and names with commas between them: where it has
 *  no `all`, what it does not name is lost (srun(1) and sbatch(1), --export). */
void me_inherit_list(me_inherit *inherit, const char *list);

/** Open a file of the user's to read it. @return -1: it is not there, or a named
 *  pipe, which may have no writer; what a shell gives by a descriptor is read */
int me_inherit_open(const char *path);

/** Change the environment of this process so, and free what is held. What a
 *  launcher or a batch system says of its ranks stays, and what memest itself
 *  needs. */
void me_inherit_apply(me_inherit *inherit);

#endif /* MEMEST_SCRIPT_INHERIT_H */
