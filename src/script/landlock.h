/**
 * @file
 * Landlock: which files a script's processes may run and, where no layer takes
 * what they write, where they may write. Linux: security/landlock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_LANDLOCK_H
#define MEMEST_SCRIPT_LANDLOCK_H

#include "script/place.h"

#include <stdbool.h>

/** The kernel's version of Landlock; 0: it has none, or it is off. */
int me_landlock_version(void);

/**
 * Put it on this process and all that it starts. It needs
 * PR_SET_NO_NEW_PRIVS.
 *
 * @param place   its programs alone may run
 * @param writes  writing is held back as well, but for the place's tmp and the
 *                devices that forget
 * @param runs_python  so may its Python: programs that are started by their paths
 *                are replaced, and none of them is Python itself
 * @return false: the kernel refused
 */
bool me_landlock_put_on(const me_place *place, bool writes, bool runs_python);

#endif /* MEMEST_SCRIPT_LANDLOCK_H */
