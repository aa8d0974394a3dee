/**
 * @file
 * What the replay and its report share. Nobody else includes this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_INTERNAL_H
#define MEMEST_ALLOC_REPLAY_INTERNAL_H

#include "alloc/id_map.h"
#include "alloc/replay.h"
#include "alloc/replay_search.h"
#include "alloc/stream.h"

/** A replay on its way. */
typedef struct replay {
    const me_replay_options *options;
    const char *name;
    me_diag *diag;
    me_pool *pool;
    me_stream *stream;
    const me_search_result
        *order;          /**< NULL: addresses are the driver model's */
    uint32_t n_chosen;   /**< of its choices, so far */
    uint32_t n_calls;    /**< events but points, so far */
    uint32_t n_released; /**< of its releases, so far */
    uint64_t released_lines[ME_SEARCH_MAX_RELEASED]; /**< where they are */
    uint64_t contradicted_line; /**< the first call that does not agree */
    me_id_map ids;
    uint64_t n_events;
    uint64_t n_points;
    uint64_t peaks[ME_POOL_STAT_COUNT][ME_POOL_SLOTS]; /**< up to the last
                                                           point */
    uint64_t oversize_peaks[2]; /**< allocations, segments */
    me_str point;               /**< name of the last point */
    me_str *report;
} replay;

/** The part of the report before the first point. */
void me_replay_begin(replay *r);

/** The counters at a point. */
void me_replay_point(replay *r, const char *name, size_t length);

/** The moment at which memory ran out; the part of the report after the last
 * point. @p oom is NULL if it never did. */
void me_replay_end(replay *r, const me_stream_event *oom);

/** All counters by pool at the end: a table, or an object of JSON. */
void me_replay_summary_text(const replay *r);
void me_replay_summary_json(const replay *r);

#endif /* MEMEST_ALLOC_REPLAY_INTERNAL_H */
