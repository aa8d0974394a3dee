/**
 * @file
 * The counters of an allocator that follows a rank, as a tracker reads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_POOL_COUNTERS_H
#define MEMEST_RUN_POOL_COUNTERS_H

#include "alloc/pool_observer.h"
#include "track/tracker.h"

/** Of @p pool, which is borrowed as long as they are read. Local. */
me_pool_counters me_pool_observer_counters(me_pool_observer *pool);

#endif /* MEMEST_RUN_POOL_COUNTERS_H */
