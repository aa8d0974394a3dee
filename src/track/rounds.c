/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/rounds.h"

#include "base/alloc.h"
#include "track/tracker_impl.h"

#include <string.h>

enum {
    FIRST_MARKS = 16
};

/** What a settled round is still told: where a span ends, and volumes. */
static const uint32_t SETTLED_KINDS =
    ME_EVENT_BIT(ME_EVENT_PHASE) | ME_EVENT_BIT(ME_EVENT_POINT) |
    ME_EVENT_BIT(ME_EVENT_ACTION_BEGIN) | ME_EVENT_BIT(ME_EVENT_ACTION_END) |
    ME_EVENT_BIT(ME_EVENT_COLLECTIVE);

void me_rounds_fini(me_rounds *rounds)
{
    me_free(rounds->marks);
    *rounds = (me_rounds){0};
}

static void add_mark(me_rounds *r, const me_tracker *t)
{
    if (r->n_marks == r->capacity) {
        const uint32_t capacity =
            r->capacity == 0 ? FIRST_MARKS : r->capacity * 2;
        me_rounds_mark *grown =
            me_realloc(r->marks, capacity, sizeof *grown, "rounds.marks");
        if (grown == NULL) {
            r->status = ME_ERR_NOMEM;
            return;
        }
        r->marks = grown;
        r->capacity = capacity;
    }
    r->marks[r->n_marks++] =
        (me_rounds_mark){t->live.requested, t->span_requested};
}

static void go_to_mark(me_rounds *r, me_tracker *t)
{
    const me_rounds_mark *mark = &r->marks[r->next++];
    t->live.requested = mark->requested;
    t->span_requested = mark->peak;
}

/** Blocks that are others in every round must be younger than the peak, since
 *  those of the rounds to come are: what they turn out to be does not change
 *  its picture. What the lasting ones turn out to be, it has learned. */
static bool has_none_of_peak(const me_tracker *t, const me_rename *renames,
                             uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (renames[i].from != renames[i].to &&
            t->live.blocks[renames[i].from].born < t->live.peak_born) {
            return false;
        }
    }
    return true;
}

/** Would another round like the one that ended change anything? Its first mark
 *  ends the span that began in the round before. */
static bool is_settled(const me_rounds *r, const me_tracker *t,
                       const me_rename *renames, uint32_t count)
{
    return !r->has_surprise && r->n_marks > 0 &&
           r->serial == t->live.peak_serial &&
           has_none_of_peak(t, renames, count);
}

uint32_t me_rounds_begin(me_rounds *rounds, me_tracker *tracker,
                         const me_rename *renames, uint32_t count)
{
    if (rounds->state == ME_ROUNDS_SETTLED) {
        go_to_mark(rounds, tracker); /* the end */
    } else if (rounds->state == ME_ROUNDS_TOLD &&
               is_settled(rounds, tracker, renames, count)) {
        add_mark(rounds, tracker);
        rounds->state = ME_ROUNDS_SETTLED;
    } else {
        rounds->state = ME_ROUNDS_TOLD;
        rounds->n_marks = 0;
        rounds->has_surprise = false;
        rounds->serial = tracker->live.peak_serial;
    }
    rounds->next = 0;
    if (rounds->state == ME_ROUNDS_SETTLED) {
        return SETTLED_KINDS;
    }
    if (count > 0) {
        me_live_rename(&tracker->live, renames, count);
    }
    return UINT32_MAX;
}

/** Points of an iteration begin and end it, and reset peaks. */
static bool is_surprise(const me_event *event)
{
    return event->kind == ME_EVENT_ITERATION ||
           (event->kind == ME_EVENT_POINT &&
            strncmp(event->name, "fwd", 3) != 0);
}

void me_rounds_event(me_rounds *rounds, me_tracker *tracker,
                     const me_event *event)
{
    if (rounds->state == ME_ROUNDS_NONE) {
        return;
    }
    const bool is_action = event->kind == ME_EVENT_ACTION_BEGIN ||
                           event->kind == ME_EVENT_ACTION_END;
    const bool ends_span = event->kind == ME_EVENT_PHASE ||
                           event->kind == ME_EVENT_POINT ||
                           (is_action && tracker->course.is_on);
    if (rounds->state == ME_ROUNDS_SETTLED) {
        if (ends_span) {
            go_to_mark(rounds, tracker);
        }
        return;
    }
    if (ends_span) {
        add_mark(rounds, tracker);
    }
    rounds->has_surprise = rounds->has_surprise || is_surprise(event);
}

void me_rounds_end(me_rounds *rounds, me_tracker *tracker)
{
    if (rounds->state == ME_ROUNDS_SETTLED) {
        go_to_mark(rounds, tracker);
    }
    rounds->state = ME_ROUNDS_NONE;
}
