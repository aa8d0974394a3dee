/**
 * @file
 * What memest does as a command of a script: tell of it, start what it would
 * start, or nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_ACT_H
#define MEMEST_SCRIPT_ACT_H

#include <stdbool.h>

/** Was this process started in the guise of another command: from a script's
 *  own folder, with a pipe to the memest that waits? */
bool me_guise_is_worn(void);

/**
 * Be that command. May not come back: what srun, a container or a profiler
 * would start takes the process's place.
 *
 * @return the command's exit code
 */
int me_guise_act(int argc, char **argv);

#endif /* MEMEST_SCRIPT_ACT_H */
