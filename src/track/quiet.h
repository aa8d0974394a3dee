/**
 * @file
 * Actions that a tracker is told again (see tensor/script.h). One that begins
 * at no more requested bytes than a like one that was told as a whole in the
 * same iteration takes no more at any of its moments, so it makes no new peak,
 * of the rank or of a module. Of such a quiet action the tracker takes the
 * blocks that outlive it, and where spans of time end the bytes that the action
 * is known to have there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_QUIET_H
#define MEMEST_TRACK_QUIET_H

#include "base/status.h"
#include "model/event.h"

#include <stdbool.h>
#include <stdint.h>

struct me_tracker;

/** The most requested bytes, plus 1, at which an action was told as a whole. */
typedef struct me_quiet_level {
    uint64_t base;    /**< without what its first allocation frees */
    uint64_t entered; /**< when it entered its first module */
} me_quiet_level;

/** All zero is a tracker that was never told an action again. */
typedef struct me_quiet {
    me_quiet_level *levels; /**< by action; owned */
    uint32_t n_levels;
    bool is_on;                  /**< a quiet action is told */
    const me_repeat_mark *marks; /**< its next one; borrowed */
    uint64_t base; /**< requested bytes when it began, without those pending */
    uint64_t pending_bytes;
    uint64_t requested; /**< of the blocks that were told */
    me_status status;
} me_quiet;

/** Give back. */
void me_quiet_fini(me_quiet *quiet);

/** An iteration begins or ends: what was told before does not count. */
void me_quiet_forget(me_quiet *quiet);

/** An action begins. @return bits of what the tracker is to be told */
uint32_t me_quiet_begin(me_quiet *quiet, struct me_tracker *tracker,
                        const me_repeated *action);

/** Before and after the tracker follows an event that ends a span. */
void me_quiet_enter_mark(me_quiet *quiet, struct me_tracker *tracker);
void me_quiet_leave_mark(me_quiet *quiet, struct me_tracker *tracker);

/** The action has been told. */
void me_quiet_end(me_quiet *quiet, struct me_tracker *tracker);

#endif /* MEMEST_TRACK_QUIET_H */
