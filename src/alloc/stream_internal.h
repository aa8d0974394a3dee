/**
 * @file
 * What the readers of the recordings share. Nobody else includes this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_STREAM_INTERNAL_H
#define MEMEST_ALLOC_STREAM_INTERNAL_H

#include "alloc/stream.h"

/** PyTorch's snapshot, read. */
typedef struct snapshot snapshot;

/** A file, and the bytes that have been read of it already; borrowed. */
typedef struct snapshot_source {
    const char *head;
    size_t head_length;
    FILE *file;
    me_progress_part *part; /**< of reading it */
} snapshot_source;

/** Make JSON of a snapshot that is a pickle. @param json_out  at its beginning,
 *  to be closed by the caller. @return as me_pickle_to_json() */
me_status me_stream_unpickle(snapshot_source source, const char *name,
                             me_diag *diag, FILE **json_out) ME_MUST_CHECK;

/** Read a snapshot. @param device  of a trace, or -1: the only one */
me_status me_snapshot_create(snapshot_source source, const char *name,
                             int device, me_diag *diag,
                             snapshot **snapshot_out) ME_MUST_CHECK;

void me_snapshot_destroy(snapshot *s);

/** The next call, as me_stream_next(). */
me_status me_snapshot_next(snapshot *s, me_diag *diag,
                           me_stream_event *event_out) ME_MUST_CHECK;

uint64_t me_snapshot_n_before(const snapshot *s);

#endif /* MEMEST_ALLOC_STREAM_INTERNAL_H */
