/**
 * @file
 * The filter of system calls under which a script runs: no network, no harm to
 * other processes, no mounts; for good, for all that the script starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_FILTER_H
#define MEMEST_SCRIPT_FILTER_H

#include <stdbool.h>

/** Can this machine and this build hold such a filter? */
bool me_filter_works(void);

/**
 * Put it on this process. It needs PR_SET_NO_NEW_PRIVS.
 *
 * @param traces_exec  starting a program stops for who traces this process, and
 *                     fails where nobody does
 * @return false: the kernel refused
 */
bool me_filter_put_on(bool traces_exec);

#endif /* MEMEST_SCRIPT_FILTER_H */
