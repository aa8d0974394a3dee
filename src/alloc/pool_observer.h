/**
 * @file
 * The allocator as an observer of the engine: its events go through a pool,
 * and where memory runs out is kept for the report. A job is run through two
 * of these, one without a limit and one with the card's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_POOL_OBSERVER_H
#define MEMEST_ALLOC_POOL_OBSERVER_H

#include "alloc/pool.h"
#include "alloc/twin_pool.h"
#include "model/event.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct me_pool_observer me_pool_observer;

/** How the job ends under the pool's limit. */
typedef struct me_pool_limit {
    bool is_oom;
    int32_t iteration;  /**< of the request that fails, with what follows */
    int32_t microbatch; /**< ME_NO_MICROBATCH outside of one */
    me_phase phase;
    me_category category;
    uint32_t module; /**< index into the module tree */
    bool is_shard;   /**< see me_event */
    const char *op;  /**< borrowed from the engine */
    bool is_outside; /**< not the allocator but NCCL or a library has found
                           no memory: PyTorch gives nothing back for those */
    me_pool_oom oom; /**< all zero unless is_oom */
    uint64_t num_alloc_retries;
    uint64_t reserved_bytes; /**< at the end, or at the failure */
} me_pool_limit;

/** Called once, within the event that found no memory. */
typedef void me_pool_on_end(void *self);

/** Called at each ME_EVENT_POINT, before the peaks are reset. */
typedef void me_pool_on_point(void *self, const me_event *point,
                              const me_pool *pool);

/**
 * An observer with an empty pool. Local.
 *
 * @param options       as for me_pool_create()
 * @param observer_out  to be destroyed by the caller, after the engine
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status
me_pool_observer_create(const me_pool_options *options,
                        me_pool_observer **observer_out) ME_MUST_CHECK;

/** Give back the observer and its pool; NULL is allowed. Local. */
void me_pool_observer_destroy(me_pool_observer *observer);

/**
 * From now on what another stream uses comes back at an allocation after the
 * next point, where the host waits for the device, and not at the next
 * allocation: the latest that is possible. Local.
 */
void me_pool_observer_free_at_points(me_pool_observer *observer);

/**
 * Follow, beside it, the pool of a rank that makes micro-batches in another order.
 * Before the first event. Local.
 *
 * @param conf  of the pool
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status
me_pool_observer_follow_twin(me_pool_observer *observer,
                             const me_alloc_conf *conf,
                             const me_twin_batch *batch) ME_MUST_CHECK;

/** Times that memory was asked of the driver or given back, by the pool and by that
 *  rank's. Local. */
uint64_t me_pool_observer_driver_calls(const me_pool_observer *observer);

/** May that rank have had other bytes at some time? Local. */
bool me_pool_observer_differs_from_twin(const me_pool_observer *observer);

/** What the engine is given; borrows @p observer. Local. */
me_observer me_pool_observer_handle(me_pool_observer *observer);

/** Be told of points; NULL switches it off. Local. */
void me_pool_observer_on_point(me_pool_observer *observer,
                               me_pool_on_point *on_point, void *self);

/** Be told when the job has run out of device memory, of which no event is
 *  followed any more; NULL switches it off. Local. */
void me_pool_observer_on_end(me_pool_observer *observer, me_pool_on_end *on_end,
                             void *self);

/** The pool, for its counters; borrowed. Local. */
const me_pool *me_pool_observer_pool(const me_pool_observer *observer);

/** As me_pool_reset_peaks(), between points. Local. */
void me_pool_observer_reset_peaks(me_pool_observer *observer);

/**
 * What CUDA, its libraries and NCCL hold of the card is now @p outside_bytes.
 * If the card has not as much left, the job has ended there. Local.
 *
 * @param event  at which it grew, borrowed
 */
void me_pool_observer_set_outside(me_pool_observer *observer,
                                  uint64_t outside_bytes,
                                  const me_event *event);

/** As me_pool_take(), with a failure kept for me_pool_observer_status(). Local.
 */
void me_pool_observer_take(me_pool_observer *observer, me_pool_taker taker,
                           uint64_t bytes);

/** The message that PyTorch ends with; nothing unless the allocator has found
 * no memory. Local. */
void me_pool_observer_oom_text(const me_pool_observer *observer, me_str *text);

/**
 * Whether all events could be followed; they are ignored after the first that
 * could not. Running out of device memory is no failure. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_OVERFLOW; ME_ERR_INTERNAL when events
 *         contradict each other
 */
me_status me_pool_observer_status(const me_pool_observer *observer,
                                  me_diag *diag) ME_MUST_CHECK;

/** How it ended. Local. */
me_pool_limit me_pool_observer_limit(const me_pool_observer *observer);

#endif /* MEMEST_ALLOC_POOL_OBSERVER_H */
