/**
 * @file
 * Memory after each operation: what the operation-level MemoryTracker of PyTorch
 * (torch/distributed/_tools/memory_tracker.py) keeps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_OP_SERIES_H
#define MEMEST_TRACK_OP_SERIES_H

#include "base/status.h"

#include <stdint.h>

/** The allocator's counters after an operation, in bytes. */
typedef struct me_op_memory {
    uint64_t allocated;
    uint64_t active;
    uint64_t reserved;
} me_op_memory;

/** One operation. */
typedef struct me_op_row {
    char *name; /**< "layers.0.forward.mm.default_3": the module entered last,
                     the operation and how often it ran before; owned */
    me_op_memory memory;
} me_op_row;

/** A moment of the program: so many operations had run. */
typedef struct me_op_marker {
    char *name; /**< owned */
    uint64_t at;
} me_op_marker;

/** All of them, in their order. All zero is none. */
typedef struct me_op_series {
    me_op_row *rows;
    uint32_t n_rows;
    uint32_t capacity;
    me_op_marker *markers;
    uint32_t n_markers;
    uint32_t markers_capacity;
    uint64_t num_alloc_retries;
} me_op_series;

/** Append an operation; the name is copied. @return ME_OK, ME_ERR_NOMEM */
me_status me_op_series_append(me_op_series *s, const char *name,
                              const me_op_memory *memory) ME_MUST_CHECK;

/** Set a marker, once a name. @return ME_OK, ME_ERR_NOMEM */
me_status me_op_series_mark(me_op_series *s, const char *name,
                            uint64_t at) ME_MUST_CHECK;

/** Give back what it holds. */
void me_op_series_fini(me_op_series *s);

#endif /* MEMEST_TRACK_OP_SERIES_H */
