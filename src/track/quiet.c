/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/quiet.h"

#include "base/alloc.h"
#include "base/size.h"
#include "track/tracker_impl.h"

#include <string.h>

enum {
    FIRST_LEVELS = 64
};

/** What a quiet action is told beside the blocks that outlive it. */
static const uint32_t QUIET_KINDS =
    ~(ME_EVENT_BIT(ME_EVENT_MODULE_ENTER) |
      ME_EVENT_BIT(ME_EVENT_MODULE_LEAVE) | ME_REPEATED_PASSING);

/** What a tracker that counts totals needs of an action: of one that is like its
 *  recording what ends spans, else each block. */
static const uint32_t SPAN_KINDS =
    ME_EVENT_BIT(ME_EVENT_PHASE) | ME_EVENT_BIT(ME_EVENT_POINT) |
    ME_EVENT_BIT(ME_EVENT_ACTION_BEGIN) | ME_EVENT_BIT(ME_EVENT_ACTION_END);
static const uint32_t BLOCK_KINDS =
    ME_EVENT_BIT(ME_EVENT_PHASE) | ME_EVENT_BIT(ME_EVENT_POINT) |
    ME_EVENT_BIT(ME_EVENT_ALLOC) | ME_EVENT_BIT(ME_EVENT_FREE_COMPLETED) |
    ME_REPEATED_PASSING;

void me_quiet_fini(me_quiet *quiet)
{
    me_free(quiet->levels);
    *quiet = (me_quiet){0};
}

void me_quiet_forget(me_quiet *quiet)
{
    if (quiet->n_levels > 0) {
        memset(quiet->levels, 0, quiet->n_levels * sizeof *quiet->levels);
    }
}

static bool has_level(me_quiet *q, uint32_t id)
{
    if (id < q->n_levels) {
        return true;
    }
    size_t count = q->n_levels == 0 ? FIRST_LEVELS : q->n_levels;
    while (count <= id) {
        count *= 2;
    }
    me_quiet_level *levels =
        me_realloc(q->levels, count, sizeof *levels, "quiet.levels");
    if (levels == NULL) {
        q->status = ME_ERR_NOMEM;
        return false;
    }
    memset(levels + q->n_levels, 0, (count - q->n_levels) * sizeof *levels);
    q->levels = levels;
    q->n_levels = (uint32_t)count;
    return true;
}

/** The action is followed by its marks alone. */
static void begin(me_quiet *quiet, const me_repeated *action, uint64_t base)
{
    quiet->is_on = true;
    quiet->marks = action->marks;
    quiet->base = base;
    quiet->pending_bytes = action->pending_bytes;
}

uint32_t me_quiet_begin(me_quiet *quiet, me_tracker *tracker,
                        const me_repeated *action)
{
    const uint64_t base = tracker->live.requested - action->pending_bytes;
    if (tracker->has_totals) {
        if (action->is_usual) {
            begin(quiet, action, base);
        }
        return action->is_usual ? SPAN_KINDS : BLOCK_KINDS;
    }
    // What is there by category at an action's end only its events tell.
    if ((tracker->course.is_on && action->has_actions) ||
        !has_level(quiet, action->id)) {
        return UINT32_MAX;
    }
    me_quiet_level *told = &quiet->levels[action->id];
    const uint64_t entered = base + action->entered_bytes;
    if (!action->is_usual || told->base <= base || told->entered <= entered) {
        told->base = me_max_u64(told->base, base + 1);
        told->entered = me_max_u64(told->entered, entered + 1);
        return UINT32_MAX;
    }
    begin(quiet, action, base);
    me_module_stats_raise(&tracker->modules, entered);
    return QUIET_KINDS;
}

void me_quiet_enter_mark(me_quiet *quiet, me_tracker *tracker)
{
    const me_repeat_mark *mark = quiet->marks++;
    const uint64_t base =
        quiet->base + (mark->is_early ? quiet->pending_bytes : 0);
    const uint64_t peak = (uint64_t)((int64_t)base + mark->peak);
    quiet->requested = tracker->live.requested;
    tracker->live.requested = (uint64_t)((int64_t)base + mark->requested);
    if (tracker->has_totals) {
        me_tracker_raise(tracker, peak);
        return;
    }
    tracker->span_requested = me_max_u64(tracker->span_requested, peak);
    if (!mark->is_early) {
        me_module_stats_raise(&tracker->modules, peak);
    }
}

void me_quiet_leave_mark(me_quiet *quiet, me_tracker *tracker)
{
    tracker->live.requested = quiet->requested;
}

void me_quiet_end(me_quiet *quiet, me_tracker *tracker)
{
    if (quiet->is_on) {
        me_quiet_enter_mark(quiet, tracker);
        if (!tracker->has_totals) {
            me_quiet_leave_mark(quiet, tracker);
        }
        quiet->is_on = false;
    }
}
