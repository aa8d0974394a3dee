/**
 * @file
 * A recording of allocator calls, read one call at a time: the lines below,
 * memest's own `--events` file (track/event_log.h), or PyTorch's memory
 * snapshot as pickle or JSON. Which one it is follows from its first byte. For
 * users: docs/replay.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_STREAM_H
#define MEMEST_ALLOC_STREAM_H

#include "alloc/pool.h"
#include "base/progress.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum me_stream_kind {
    ME_STREAM_END,   /**< nothing follows */
    ME_STREAM_ALLOC, /**< `alloc BYTES ID STREAM` */
    ME_STREAM_FREE,  /**< `free BYTES ID …`: requested and completed; with
                          "late" at the end requested */
    ME_STREAM_FREE_REQUESTED, /**< `free_requested ID` */
    ME_STREAM_FREE_COMPLETED, /**< `free_completed ID` */
    ME_STREAM_EMPTY_CACHE,    /**< `empty_cache` */
    ME_STREAM_TAKE,           /**< `take TAKER BYTES`: see me_pool_take() */
    ME_STREAM_POINT,          /**< `point NAME`: peaks begin anew */
    ME_STREAM_MARK            /**< `mark NAME`: peaks go on */
} me_stream_kind;

/** One call. Texts are borrowed until the next one is read. */
typedef struct me_stream_event {
    me_stream_kind kind;
    uint64_t bytes;  /**< requested; alloc, take, and a free that says so */
    bool has_bytes;  /**< free: of a line, which says them */
    uint64_t stream; /**< CUDA stream; alloc */
    const char *id; /**< of the block, or the point's name; no NUL at its end */
    size_t id_length;
    me_pool_taker taker;   /**< take */
    bool has_no_addresses; /**< ids are numbers of memest's, of which nothing
                               follows when they come back */
    uint64_t line; /**< of the file, from 1; in a snapshot the entry's number */
} me_stream_event;

typedef struct me_stream me_stream;

/**
 * Begin to read. Local.
 *
 * @param file        open for reading, stays the caller's; a pipe will do
 * @param name        what errors call it
 * @param device      whose trace of a snapshot to take; -1: the only one that
 *                    is not empty
 * @param stream_out  to be destroyed by the caller
 * @return ME_OK, ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_stream_create(FILE *file, const char *name, int device,
                           me_diag *diag, me_stream **stream_out) ME_MUST_CHECK;

/** Show how far the reading is. Local.
 *
 *  @param part  of the file's bytes; borrowed; NULL: nobody looks */
void me_stream_watch(me_stream *stream, me_progress_part *part);

/** Give the reader back, not the file; NULL is allowed. Local. */
void me_stream_destroy(me_stream *stream);

/**
 * The next call, ME_STREAM_END after the last. Local.
 *
 * @return ME_OK; ME_ERR_SYNTAX with the line; ME_ERR_SYNTAX or ME_ERR_CONFIG
 *         for a snapshot that cannot be used; ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_stream_next(me_stream *stream, me_diag *diag,
                         me_stream_event *event_out) ME_MUST_CHECK;

/** Whether it is PyTorch's snapshot. Local. */
bool me_stream_is_snapshot(const me_stream *stream);

/** Blocks that were there before the recording began, which come first: of a
 * snapshot, in the order of their addresses; of other files, the `held` lines
 * that were read so far, in the order in which they were allocated. Local. */
uint64_t me_stream_n_before(const me_stream *stream);

#endif /* MEMEST_ALLOC_STREAM_H */
