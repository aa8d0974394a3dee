/**
 * @file
 * The two ways to look for cards, each in a file of its own, with one beside
 * it for builds that leave it out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_MACHINE_IMPL_H
#define MEMEST_DEVICE_MACHINE_IMPL_H

#include "device/machine.h"

/** @return NULL, or why there is none; static */
const char *me_machine_cuda(me_machine_card *card_out);

/** @return NULL, or why there is none; static */
const char *me_machine_hwloc(me_machine_card *card_out);

#endif /* MEMEST_DEVICE_MACHINE_IMPL_H */
