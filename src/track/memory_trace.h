/**
 * @file
 * All that a rank's allocator does, entry by entry, with the place in the
 * program that asked for it: what PyTorch's memory snapshot records. Beside it
 * what the program tells of itself, for timelines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_MEMORY_TRACE_H
#define MEMEST_TRACK_MEMORY_TRACE_H

#include "alloc/pool.h"
#include "model/event.h"
#include "tensor/module.h"

#include <stdint.h>

/** Where the program was. Texts are borrowed from the engine. */
typedef struct me_trace_place {
    const char *op; /**< or NULL */
    uint32_t module;
    int32_t iteration; /**< -1 during set-up */
    int32_t microbatch;
    uint8_t phase;
    uint8_t category; /**< of the block that is made there, as far as the whole
                           run tells */
} me_trace_place;

/** One entry of the allocator's trace. */
typedef struct me_trace_entry {
    me_pool_trace trace;
    uint32_t place; /**< index into the places */
} me_trace_entry;

/** Something that the program tells. */
typedef struct me_trace_mark {
    me_event event;
    uint32_t at; /**< entries before it */
} me_trace_mark;

typedef struct me_memory_trace me_memory_trace;

/** @return NULL without memory */
me_memory_trace *me_memory_trace_create(void);

/** Give back; NULL is allowed. */
void me_memory_trace_destroy(me_memory_trace *trace);

/** Keep what the program tells as well, of one iteration. */
void me_memory_trace_keep_marks(me_memory_trace *trace, int32_t iteration);

/** For the engine, before the pool's own. */
me_observer me_memory_trace_observer(me_memory_trace *trace);

/** For me_pool_options.on_trace. */
void me_memory_trace_on_pool(void *self, const me_pool_trace *entry);

/** @return ME_OK or ME_ERR_NOMEM, whenever it came */
me_status me_memory_trace_status(const me_memory_trace *trace);

/** What was kept; borrowed. */
const me_trace_entry *me_memory_trace_entries(const me_memory_trace *trace,
                                              uint32_t *n_out);
const me_trace_place *me_memory_trace_places(const me_memory_trace *trace,
                                             uint32_t *n_out);
const me_trace_mark *me_memory_trace_marks(const me_memory_trace *trace,
                                           uint32_t *n_out);

#endif /* MEMEST_TRACK_MEMORY_TRACE_H */
