/**
 * @file
 * The other end of what late frees may take. What another CUDA stream uses
 * comes back at an allocation after the device is done with it, which depends
 * on how far the host runs ahead. The rank's result has the earliest that is
 * possible; this is the latest: after the next point, where the host waits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_LATE_H
#define MEMEST_RUN_LATE_H

#include "alloc/pool_observer.h"
#include "plan/plan.h"
#include "track/result.h"

/** A second allocator of the same events. */
typedef struct me_late_frees {
    me_pool_observer *pool; /**< owned; NULL: nobody asks */
    me_late_result peaks;
} me_late_frees;

/**
 * @param late_out  stays where it is until me_late_frees_fini()
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_late_frees_init(const me_pool_options *options,
                             me_late_frees *late_out) ME_MUST_CHECK;

/** Others take addresses of the device: see me_pool_take(). */
void me_late_frees_take(me_late_frees *late, me_pool_taker taker,
                        uint64_t bytes);

void me_late_frees_fini(me_late_frees *late);

#endif /* MEMEST_RUN_LATE_H */
