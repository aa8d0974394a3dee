/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/machine.h"

#include "device/machine_impl.h"

#include <stddef.h>

me_status me_machine_find_card(me_diag *diag, me_machine_card *card_out)
{
    me_machine_card card = {.n_cards = 0};
    const char *cuda = me_machine_cuda(&card);
    const char *hwloc = cuda == NULL ? NULL : me_machine_hwloc(&card);
    if (cuda != NULL && hwloc != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "no card found on this machine (CUDA: %s; hwloc: %s): "
                       "name one with --device",
                       cuda, hwloc);
    }
    card.seen_by = cuda == NULL ? "CUDA" : "hwloc";
    *card_out = card;
    return ME_OK;
}
