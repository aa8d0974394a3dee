/**
 * @file
 * Watches the events of one simulated rank and says what it took: requested
 * bytes at every point, the peak of every iteration with its cause and its
 * composition, peaks by phase, and what each module took.
 *
 * A tracker is an observer. It must come before the observer that plays the
 * allocator, which resets its peaks at points: the tracker reads them first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_TRACKER_H
#define MEMEST_TRACK_TRACKER_H

#include "base/status.h"
#include "model/event.h"
#include "model/shard_kin.h"
#include "tensor/module.h"
#include "track/result.h"

#include <stdint.h>

/** A counter of the allocator, bytes; the peak since it was last reset. */
typedef struct me_pool_counter {
    uint64_t current;
    uint64_t peak;
} me_pool_counter;

/** How the tracker reads an allocator. A NULL function: nobody knows. */
typedef struct me_pool_counters {
    void (*read)(void *self, me_pool_counter *allocated_out,
                 me_pool_counter *reserved_out);
    void (*reset_peaks)(void *self); /**< peak becomes current, of both;
                                          NULL: somebody else does so at
                                          points, and allocated and reserved
                                          bytes of phases stay unknown */
    void *self;
} me_pool_counters;

/** How it reads what is gone from the card. A NULL function: nobody knows. */
typedef struct me_device_counter {
    uint64_t (*read_bytes)(void *self);
    void *self;
} me_device_counter;

typedef struct me_tracker me_tracker;

/**
 * A tracker that has seen nothing. Local.
 *
 * @param tree    modules of the rank; borrowed, may grow while events come
 * @param pool    may be NULL: allocated and reserved bytes stay unknown; what
 *                it names is borrowed
 * @param device  may be NULL: device bytes stay unknown
 * @return owned by the caller; NULL without memory
 */
me_tracker *me_tracker_create(const me_module_tree *tree,
                              const me_pool_counters *pool,
                              const me_device_counter *device);

/** Give back; NULL is allowed. Local. */
void me_tracker_destroy(me_tracker *tracker);

/** Keep the course of the steady iteration, part by part; before events come.
 *  Local. */
void me_tracker_keep_course(me_tracker *tracker);

/** Count requested bytes alone, and leave out what they are made of: contributors,
 *  causes and modules; before events come. What is counted is the same, and a
 *  repeated action costs a step for each of its marks. Local. */
void me_tracker_keep_totals(me_tracker *tracker);

/** What to wire to the rank's engine; borrows @p tracker. Local. */
me_observer me_tracker_observer(me_tracker *tracker);

/** From here on, and no longer, another rank may hold fewer blocks; see
 * twin_span.h. Local. */
void me_tracker_begin_twin_span(me_tracker *tracker);
void me_tracker_end_twin_span(me_tracker *tracker);

/** Once the rank is finished: may one of its peaks not be its twin's? Local. */
bool me_tracker_differs_from_twin(const me_tracker *tracker);

/** As me_tracker_finish() for a rank whose shards are of the same kin as those
 *  of the rank that was watched. Local. */
me_status me_tracker_finish_as(me_tracker *tracker,
                               const me_shard_modules *shards, me_diag *diag,
                               me_rank_result **result_out) ME_MUST_CHECK;

/**
 * What the rank took, once all events have come. Local.
 *
 * @param result_out  owned by the caller, independent of the tracker; its
 *                    limit and device parts are unknown until they are set
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_OVERFLOW; ME_ERR_INTERNAL for a stream
 *         that frees what is not live or names modules that do not exist
 */
me_status me_tracker_finish(me_tracker *tracker, me_diag *diag,
                            me_rank_result **result_out) ME_MUST_CHECK;

/** Do peaks go on at the point? Those inside a forward, fwdK_begin and fwdK_end,
 *  are looked at alone. Local. */
bool me_point_keeps_peaks(const char *name);

#endif /* MEMEST_TRACK_TRACKER_H */
