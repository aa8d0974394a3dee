/**
 * @file
 * A memory snapshot's trace, followed: bytes at the peak, and which blocks live
 * there. Blocks that the trace does not make were there before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DIFF_SNAPSHOT_PEAK_H
#define MEMEST_DIFF_SNAPSHOT_PEAK_H

#include "alloc/id_map.h"
#include "base/str.h"
#include "diff/profile.h"

/** A block, as it is asked for. */
typedef struct me_trace_call {
    uint64_t address;
    uint64_t bytes;
    uint32_t label;    /**< index into the labels */
    int32_t category;  /**< me_category; -1: not known */
    uint32_t made_at;  /**< changes up to its own; 0: it was there before */
    uint32_t freed_at; /**< changes before its free; UINT32_MAX: never */
} me_trace_call;

/** The reading. All zero but for the profile is its beginning. */
typedef struct me_trace_reading {
    me_profile *profile;
    int32_t rank;     /**< whose memory it is; -1: nobody says */
    me_str label;     /**< of the block that is read */
    int32_t category; /**< of it */
    char **labels;
    uint32_t n_labels;
    uint32_t label_capacity;
    me_id_map label_of;
    me_trace_call *blocks; /**< in the order in which they are made */
    uint32_t n_blocks;
    uint32_t block_capacity;
    me_trace_call *at_end; /**< that the segments hold */
    uint32_t n_at_end;
    uint32_t end_capacity;
    int64_t *changes; /**< of the bytes that live: frees as they complete */
    uint32_t n_changes;
    uint32_t change_capacity;
    me_id_map live;         /**< address: block */
    uint64_t reserved_end;  /**< by the segments */
    uint64_t allocated_end; /**< by them */
    int64_t reserved;       /**< by the trace, since its beginning */
    int64_t reserved_peak;
} me_trace_reading;

/** The category that a frame's file names; -1: none. */
int32_t me_trace_category(const char *file);

/** An entry of the trace. @param metadata  the user's word for where it is
 *  @return ME_OK or ME_ERR_NOMEM */
me_status me_trace_add(me_trace_reading *t, const char *action,
                       const me_trace_call *call,
                       const char *metadata) ME_MUST_CHECK;

/** A block that lives at the end. @return ME_OK or ME_ERR_NOMEM */
me_status me_trace_add_end(me_trace_reading *t,
                           const me_trace_call *block) ME_MUST_CHECK;

/** All is read: the profile is filled in. @return ME_OK or ME_ERR_NOMEM */
me_status me_trace_finish(me_trace_reading *t) ME_MUST_CHECK;

void me_trace_reading_fini(me_trace_reading *t);

#endif /* MEMEST_DIFF_SNAPSHOT_PEAK_H */
