/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "track/mem_tracker_impl.h"

uint64_t me_mem_external_bytes(int device, uint64_t bytes)
{
    return device == ME_MEM_CUDA ? me_round_up(bytes, ME_MEM_BLOCK_BYTES)
                                 : bytes;
}

/** @param more  less where the sum wraps */
static void change_external(me_mem_tracker *t, int device, uint64_t more)
{
    me_mem_device *d = &t->current.device[device];
    const uint32_t category =
        t->options.is_fsdp ? ME_FSDP_MEM_INPUTS : ME_MEM_OTHER;
    d->by_category[category] += more;
    d->total += more;
}

void me_mem_tracker_add_external(me_mem_tracker *t, int device, uint64_t bytes)
{
    change_external(t, device, bytes);
    if (t->options.as_memtracker) {
        t->has_unchecked = true; // the next operation sees it
    } else {
        me_mem_check_peaks(t);
    }
}

void me_mem_tracker_drop_external(me_mem_tracker *t, int device, uint64_t bytes)
{
    change_external(t, device, 0 - bytes);
}
