/**
 * @file
 * Temporary files that must not outlive the process: what a signal's handler
 * finds of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_OUTFILE_GUARD_H
#define MEMEST_BASE_OUTFILE_GUARD_H

#include <stddef.h>

/**
 * Make a file as mkstemp() does, and guard it. Local.
 *
 * @param name       a template; filled in
 * @param unnamed    a file without a name, which is given this one; −1: none, a
 *                   file is made
 * @param guard_out  for me_outfile_guard_end(), also on failure
 * @return a descriptor, of @p unnamed itself; −1 with errno
 */
int me_outfile_guard_make(char *name, int unnamed, size_t *guard_out);

/** The file is gone, or has its name: forget it. Local. */
void me_outfile_guard_end(size_t guard);

#endif /* MEMEST_BASE_OUTFILE_GUARD_H */
