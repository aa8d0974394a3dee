/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/late.h"

#include "base/size.h"

static void keep_peaks(void *self, const me_event *point, const me_pool *pool)
{
    me_late_result *peaks = self;
    const uint64_t requested = me_pool_peak(pool, ME_POOL_REQUESTED_BYTES);
    const uint64_t allocated = me_pool_peak(pool, ME_POOL_ALLOCATED_BYTES);
    const uint64_t reserved = me_pool_peak(pool, ME_POOL_RESERVED_BYTES);
    peaks->reserved_bytes = me_max_u64(peaks->reserved_bytes, reserved);
    if (point->iteration == ME_STEADY_ITERATION) {
        peaks->is_known = true;
        peaks->requested_bytes = me_max_u64(peaks->requested_bytes, requested);
        peaks->allocated_bytes = me_max_u64(peaks->allocated_bytes, allocated);
    }
}

me_status me_late_frees_init(const me_pool_options *options,
                             me_late_frees *late_out)
{
    *late_out = (me_late_frees){.pool = NULL};
    const me_status status = me_pool_observer_create(options, &late_out->pool);
    if (status == ME_OK) {
        me_pool_observer_free_at_points(late_out->pool);
        me_pool_observer_on_point(late_out->pool, keep_peaks, &late_out->peaks);
    }
    return status;
}

void me_late_frees_take(me_late_frees *late, me_pool_taker taker,
                        uint64_t bytes)
{
    if (late->pool != NULL) {
        me_pool_observer_take(late->pool, taker, bytes);
    }
}

void me_late_frees_fini(me_late_frees *late)
{
    me_pool_observer_destroy(late->pool);
    late->pool = NULL;
}
