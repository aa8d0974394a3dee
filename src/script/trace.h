/**
 * @file
 * Watching over the processes of a script: how many there are, and what they
 * start. A program that is no part of the script's folder becomes memest in
 * its guise, whatever path it was called by.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_TRACE_H
#define MEMEST_SCRIPT_TRACE_H

#include "script/place.h"

#include <stdbool.h>
#include <sys/types.h>

/** Watch @p child and all that it starts, until they end. @return false: this
 *  machine or this build cannot */
bool me_trace_begin(pid_t child);

/**
 * Who watches: what waitpid() said of a process that did not end. The process
 * goes on.
 *
 * @param count  processes that there are, follows
 */
void me_trace_go_on(const me_place *place, pid_t child, int wait_status,
                    int *count);

#endif /* MEMEST_SCRIPT_TRACE_H */
