/**
 * @file
 * Repeated actions (tensor/script.h) that a tracker need not follow in full. If
 * one begins at no more requested bytes than an equal one that was followed in
 * full in the same iteration, it takes no more than that one at any moment, so
 * it cannot set a new peak, of the rank or of a module: it is quiet. Of a quiet
 * action the tracker follows the blocks that outlive it; where a span of time
 * ends within, the action's marks say how many bytes there were. A tracker that
 * counts totals alone (me_tracker_keep_totals()) follows each usual action by its
 * marks.
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

/** The most requested bytes, plus 1, at which an action was followed. */
typedef struct me_quiet_level {
    uint64_t base;    /**< at its beginning, without pending frees */
    uint64_t entered; /**< at its first module */
} me_quiet_level;

/** All zero is a tracker that never met a repeated action. */
typedef struct me_quiet {
    me_quiet_level *levels; /**< by the action's id; owned */
    uint32_t n_levels;
    bool is_on;                  /**< a quiet action is being told */
    const me_repeat_mark *marks; /**< the action's next mark; borrowed */
    uint64_t base; /**< requested bytes when it began, without those pending */
    uint64_t pending_bytes;
    uint64_t requested; /**< of the blocks that the tracker followed since */
    me_status status;
} me_quiet;

/** Give back. */
void me_quiet_fini(me_quiet *quiet);

/** An iteration begins or ends: levels of earlier iterations do not count. */
void me_quiet_forget(me_quiet *quiet);

/** A repeated action begins. @return as me_observer.on_repeated */
uint32_t me_quiet_begin(me_quiet *quiet, struct me_tracker *tracker,
                        const me_repeated *action);

/** Around an event that ends a span: the tracker's bytes are set to the mark's,
 * and back. */
void me_quiet_enter_mark(me_quiet *quiet, struct me_tracker *tracker);
void me_quiet_leave_mark(me_quiet *quiet, struct me_tracker *tracker);

/** The action has been told. */
void me_quiet_end(me_quiet *quiet, struct me_tracker *tracker);

#endif /* MEMEST_TRACK_QUIET_H */
