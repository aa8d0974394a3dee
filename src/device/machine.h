/**
 * @file
 * The cards of the machine that memest runs on, as CUDA or hwloc see them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_MACHINE_H
#define MEMEST_DEVICE_MACHINE_H

#include "base/status.h"

#include <stdint.h>

enum {
    ME_MACHINE_TEXT = 96
};

/** The machine's first card; what is not known is 0. */
typedef struct me_machine_card {
    char name[ME_MACHINE_TEXT]; /**< NVIDIA's */
    const char *seen_by;        /**< "CUDA" or "hwloc" */
    int32_t n_cards;
    uint64_t total_bytes;
    uint64_t multiprocessors;
    uint64_t threads_per_multiprocessor;
} me_machine_card;

/**
 * Look for a card, with CUDA and then with hwloc. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG with the reason that each of them gives
 */
me_status me_machine_find_card(me_diag *diag,
                               me_machine_card *card_out) ME_MUST_CHECK;

#endif /* MEMEST_DEVICE_MACHINE_H */
