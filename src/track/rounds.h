/**
 * @file
 * Rounds of a loop that a tracker is told again (see tensor/cycle.h). Once a
 * round has made no new peak and changed nothing in the picture of the last
 * one, the rounds after it would not either: of them the tracker takes only
 * the moments at which it reads the allocator, with the requested bytes that
 * it has seen there. Peaks of requested bytes are maxima over all rounds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_ROUNDS_H
#define MEMEST_TRACK_ROUNDS_H

#include "base/event.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct me_tracker;

typedef enum me_rounds_state {
    ME_ROUNDS_NONE,   /**< no round is told again */
    ME_ROUNDS_TOLD,   /**< this one is told as a whole, and watched */
    ME_ROUNDS_SETTLED /**< of this one the marks are known */
} me_rounds_state;

/** Requested bytes where a span of a round ends, and the most in it. */
typedef struct me_rounds_mark {
    uint64_t requested;
    uint64_t peak;
} me_rounds_mark;

/** All zero is a tracker that was never told a round again. */
typedef struct me_rounds {
    me_rounds_state state;
    me_rounds_mark *marks; /**< where spans of a round end, and at its own
                                end; owned */
    uint32_t n_marks;
    uint32_t capacity;
    uint32_t next;     /**< mark of a settled round */
    uint64_t serial;   /**< of the peak when the round began */
    bool has_surprise; /**< the round did what another might not */
    me_status status;
} me_rounds;

/** Give back. */
void me_rounds_fini(me_rounds *rounds);

/** A round begins. @return bits of the kinds that the tracker is to be told */
uint32_t me_rounds_begin(me_rounds *rounds, struct me_tracker *tracker,
                         const me_rename *renames, uint32_t count);

/** Before the tracker follows an event. */
void me_rounds_event(me_rounds *rounds, struct me_tracker *tracker,
                     const me_event *event);

/** The last round has been told. */
void me_rounds_end(me_rounds *rounds, struct me_tracker *tracker);

#endif /* MEMEST_TRACK_ROUNDS_H */
