/**
 * @file
 * The card that a topology in hwloc's XML tells of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_TOPOLOGY_CARD_H
#define MEMEST_DEVICE_TOPOLOGY_CARD_H

#include "device/machine.h"

/** @return NULL, or why there is none; static. Local. */
const char *me_topology_find_card(const char *path, me_machine_card *card_out);

#endif /* MEMEST_DEVICE_TOPOLOGY_CARD_H */
