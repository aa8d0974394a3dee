/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/pool_counters.h"

static void read_pool(void *self, me_pool_counter *allocated_out,
                      me_pool_counter *reserved_out)
{
    const me_pool *pool = me_pool_observer_pool(self);
    *allocated_out = (me_pool_counter){
        .current = me_pool_current(pool, ME_POOL_ALLOCATED_BYTES),
        .peak = me_pool_peak(pool, ME_POOL_ALLOCATED_BYTES),
    };
    *reserved_out = (me_pool_counter){
        .current = me_pool_current(pool, ME_POOL_RESERVED_BYTES),
        .peak = me_pool_peak(pool, ME_POOL_RESERVED_BYTES),
    };
}

static void reset_pool(void *self)
{
    me_pool_observer_reset_peaks(self);
}

me_pool_counters me_pool_observer_counters(me_pool_observer *pool)
{
    return (me_pool_counters){
        .read = read_pool, .reset_peaks = reset_pool, .self = pool};
}
