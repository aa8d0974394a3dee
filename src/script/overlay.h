/**
 * @file
 * The layer that takes what a script writes: every file system of the machine,
 * seen through an overlay that lies in memory and vanishes with the last
 * process. Needs namespaces of a user's own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_OVERLAY_H
#define MEMEST_SCRIPT_OVERLAY_H

#include "script/place.h"

#include <stdbool.h>

/**
 * Leave the machine's namespaces of users, mounts, networks, processes (for
 * what this process starts) and messages. This process must have one thread.
 *
 * @return false: not allowed here, errno says why
 */
bool me_layer_leave(void);

/**
 * In the first process of the new ones: put the layer over all that can be
 * seen. File systems that take no overlay can only be read, devices are those
 * that forget.
 *
 * @return NULL, or what failed; errno says why
 */
const char *me_layer_put_over(const me_place *place);

#endif /* MEMEST_SCRIPT_OVERLAY_H */
