/**
 * @file
 * Memory after each operation, which PyTorch's operation-level MemoryTracker
 * (torch/distributed/_tools/memory_tracker.py) keeps: of a run
 * (memest_tracker_series()) or of a file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SERIES_H
#define MEMEST_SERIES_H

#include "memest/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_series memest_series;

/**
 * MemoryTracker.load(): read what save_stats() saved, as JSON: what
 * memest_series_text() gives with MEMEST_SERIES_JSON.
 *
 * @param series_out  owned by the caller
 * @return MEMEST_OK; MEMEST_ERR_IO; MEMEST_ERR_SYNTAX; MEMEST_ERR_CONFIG for
 *         JSON that is no series; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_series_load(const char *path, memest_series **series_out,
                   memest_error *error) MEMEST_MUST_CHECK;

/** Give back one that was loaded; NULL is allowed. */
MEMEST_API void memest_series_destroy(memest_series *series);

/** The allocator's counters after an operation, in bytes. */
typedef struct memest_operation {
    size_t struct_size;
    const char *name; /**< "layers.0.forward.mm.default_3": the module that was
                           entered last, the operation, how often it ran
                           before; the series' */
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    uint64_t reserved_bytes;
} memest_operation;

/** Operations in their order. @return false: no such index, or `struct_size`
 *  is too small to hold anything; the same below */
MEMEST_API size_t memest_series_n_operations(const memest_series *series);
MEMEST_API bool memest_series_operation(const memest_series *series,
                                        size_t index,
                                        memest_operation *operation_out);

/** A moment of the program: "fw_start", "fw_bw_boundary". */
typedef struct memest_marker {
    size_t struct_size;
    const char *name; /**< the series' */
    uint64_t at;      /**< operations that had run before it */
} memest_marker;

MEMEST_API size_t memest_series_n_markers(const memest_series *series);
MEMEST_API bool memest_series_marker(const memest_series *series, size_t index,
                                     memest_marker *marker_out);

/** Times that the allocator freed its cache to find memory. */
MEMEST_API uint64_t
memest_series_num_alloc_retries(const memest_series *series);

/** How much more an operation left allocated than the one before it. */
typedef struct memest_growth {
    size_t struct_size;
    const char *name; /**< the series' */
    int64_t bytes;    /**< negative: less */
    size_t operation; /**< its index in the series */
} memest_growth;

/** The operations of summary(): all but the first, the largest growth first,
 *  equal ones in the order in which they ran. */
MEMEST_API bool memest_series_top(const memest_series *series, size_t place,
                                  memest_growth *growth_out);

/** As what a series is written. */
typedef enum memest_series_format {
    MEMEST_SERIES_SUMMARY, /**< summary() */
    MEMEST_SERIES_JSON,    /**< save_stats(): to keep and load again */
    MEMEST_SERIES_HTML     /**< show_traces(): a page with its plots */
} memest_series_format;

/**
 * The series as a text; the caller writes it to a file, if it is to be saved.
 *
 * @param top       operations of the summary and the page; 0: 20
 * @param text_out  ends with a NUL; owned by the caller, for
 *                  memest_text_destroy()
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for no such format;
 *         MEMEST_ERR_UNSUPPORTED for a page that is not built in;
 *         MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_series_text(
    const memest_series *series, memest_series_format format, uint32_t top,
    char **text_out, memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_SERIES_H */
