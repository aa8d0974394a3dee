/**
 * @file
 * A recording in memory, for who goes through it more than once: ids are
 * numbers, points are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_CALLS_H
#define MEMEST_ALLOC_REPLAY_CALLS_H

#include "alloc/stream.h"

/** A call of the allocator. */
typedef struct me_replay_call {
    uint64_t bytes;  /**< requested; alloc */
    uint64_t stream; /**< alloc */
    uint64_t line;   /**< of the recording */
    uint32_t id;     /**< below me_replay_calls.n_ids; not of empty_cache */
    me_stream_kind kind;
} me_replay_call;

/** All of them, in the order of the recording. */
typedef struct me_replay_calls {
    me_replay_call *calls; /**< owned */
    uint32_t n_calls;
    uint32_t n_ids;
    uint32_t n_allocs;
    uint32_t capacity;
    bool is_too_long; /**< to be held: there are none */
} me_replay_calls;

/**
 * Read a recording to its end, or up to a mistake in it, which whoever replays
 * it will report. Local.
 *
 * @param calls_out  without calls if ids are no addresses (a file of memest's
 *                   own, or none comes back), if it is a snapshot, or if it is
 *                   too long to be held; to be given back with
 *                   me_replay_calls_fini()
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_replay_calls_read(FILE *file, const char *name,
                               me_replay_calls *calls_out) ME_MUST_CHECK;

/** Whether an event is a call: no point, nobody else's memory. */
bool me_replay_is_call(const me_stream_event *event);

void me_replay_calls_fini(me_replay_calls *calls);

#endif /* MEMEST_ALLOC_REPLAY_CALLS_H */
