/**
 * @file
 * What variables of a script's launch can matter to its job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_LAUNCH_VARIABLES_H
#define MEMEST_APP_LAUNCH_VARIABLES_H

#include "script/script_run.h"

#include <stdbool.h>

/** Can `NAME=VALUE` matter to memory or to the ranks? One that is empty does not,
 *  unless it is a number of ranks that is missing. Local. */
bool me_launch_variable_counts(const char *variable);

/**
 * The first of these that two launches of the same words do not have alike, which
 * makes two jobs of them. The cards of a process alone do not: a script that starts
 * each rank by itself gives each its own. Local.
 *
 * @return `NAME=VALUE`, borrowed from the one that has it; NULL: there is none
 */
const char *me_launch_variables_differ(const me_script_launch *a,
                                       const me_script_launch *b);

#endif /* MEMEST_APP_LAUNCH_VARIABLES_H */
