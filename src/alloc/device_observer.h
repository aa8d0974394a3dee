/**
 * @file
 * Device memory outside of the allocator as an observer of the engine: from
 * the kernels and collectives that a rank's program really runs, in their
 * order, follows what is loaded and which communicators exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_DEVICE_OBSERVER_H
#define MEMEST_ALLOC_DEVICE_OBSERVER_H

#include "alloc/device_memory.h"
#include "model/event.h"

#include <stdbool.h>
#include <stdint.h>

/** Where the rank's groups lie on the machine. */
typedef struct me_device_place {
    me_group_shape shape[ME_GROUP_COUNT];
    int32_t position[ME_GROUP_COUNT]; /**< this rank's place in the group */
    int32_t world_offset; /**< to ranks of the world that calls name: from the
                               rank that runs to the one whose place this is */
    uint64_t exchange_bytes;    /**< that a library other than NCCL takes when
                                experts first exchange tokens; 0: NCCL does it */
    uint64_t user_buffer_bytes; /**< that a library takes before the model is
                                   built */
    /** Is member @p peer of the group on another node? */
    bool (*is_remote)(void *self, me_group_kind group, int32_t peer);
    void *self;
} me_device_place;

/** Called after each growth with the event that caused it. */
typedef void me_device_on_growth(void *self, uint64_t bytes,
                                 const me_event *event);

typedef struct me_device_observer me_device_observer;

/**
 * A process that has its CUDA context and nothing else. Local.
 *
 * @param place         copied; what it names is borrowed
 * @param observer_out  to be destroyed by the caller, after the engine
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status
me_device_observer_create(const me_device_card *card,
                          const me_nccl_setup *setup,
                          const me_device_place *place,
                          me_device_observer **observer_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_device_observer_destroy(me_device_observer *observer);

/** What the engine is given; borrows @p observer. Local. */
me_observer me_device_observer_handle(me_device_observer *observer);

/** Be told of growth; NULL switches it off. Local. */
void me_device_observer_on_growth(me_device_observer *observer,
                                  me_device_on_growth *on_growth, void *self);

/** Be told of addresses that are taken, in order; NULL switches it off. An
 * observer of allocations that minds must come after this one. Local. */
void me_device_observer_on_take(me_device_observer *observer,
                                me_device_on_take *on_take, void *self);

/** What is there now; borrowed. Local. */
const me_device_memory *
me_device_observer_memory(const me_device_observer *observer);

/** ME_OK, or the first failure of me_device_memory_call(). Local. */
me_status me_device_observer_status(const me_device_observer *observer,
                                    me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_ALLOC_DEVICE_OBSERVER_H */
