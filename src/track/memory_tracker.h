/**
 * @file
 * PyTorch's operation-level MemoryTracker: the allocator's counters after every
 * operation that the dispatcher sees, of one iteration.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_MEMORY_TRACKER_H
#define MEMEST_TRACK_MEMORY_TRACKER_H

#include "tensor/hooks.h"
#include "track/op_series.h"

/** Where the counters come from. */
typedef struct me_op_counters {
    void (*read)(void *self, me_op_memory *memory_out);
    void *self;
} me_op_counters;

typedef struct me_memory_tracker me_memory_tracker;

/**
 * A tracker on the program of @p e, before it runs; of nothing but iteration
 * @p iteration.
 *
 * @param root              the module whose forward is marked
 * @param is_dispatch_mode  it changes the program as PyTorch's tool does, under
 *                          which no gradient is added in place
 * @return owned by the caller; NULL without memory
 */
me_memory_tracker *me_memory_tracker_create(me_engine *e, me_module_id root,
                                            int32_t iteration,
                                            const me_op_counters *counters,
                                            bool is_dispatch_mode);

/** Give back; NULL is allowed. */
void me_memory_tracker_destroy(me_memory_tracker *t);

/** What it has seen; borrowed. */
const me_op_series *me_memory_tracker_series(const me_memory_tracker *t);

#endif /* MEMEST_TRACK_MEMORY_TRACKER_H */
