/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/perfetto_clock.h"

#include "base/alloc.h"

#include <stdbool.h>

/** Times rise: what would not is left out. @return ME_OK or ME_ERR_NOMEM */
static me_status add_anchor(me_perfetto_clock *c, uint32_t at, int64_t ns)
{
    if (c->n_anchors > 0 && (at <= c->anchors[c->n_anchors - 1].at ||
                             ns < c->anchors[c->n_anchors - 1].ns)) {
        return ME_OK;
    }
    me_perfetto_anchor *grown = me_grow(c->anchors, c->n_anchors, &c->capacity,
                                        sizeof *grown, "report.perfetto");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    c->anchors = grown;
    grown[c->n_anchors++] = (me_perfetto_anchor){at, ns};
    return ME_OK;
}

/** The next span of an action, which come in their order. */
static const me_time_span *find_span(const me_time_stage *stage, uint32_t *next,
                                     const me_event *action)
{
    for (uint32_t i = *next; stage != NULL && i < stage->n_spans; i++) {
        const me_time_span *s = &stage->spans[i];
        if (s->microbatch == action->microbatch && s->chunk == action->chunk) {
            *next = i + 1;
            return s;
        }
    }
    return NULL;
}

/** Calls of the iteration among the first @p end entries, from @p first on. */
static uint32_t count_calls(const me_memory_trace *trace, int32_t iteration,
                            uint32_t first, uint32_t end)
{
    uint32_t n_entries = 0;
    uint32_t n_places = 0;
    uint32_t n = 0;
    const me_trace_entry *entries = me_memory_trace_entries(trace, &n_entries);
    const me_trace_place *places = me_memory_trace_places(trace, &n_places);
    for (uint32_t i = first; i < end && i < n_entries; i++) {
        n += places[entries[i].place].iteration == iteration ? 1 : 0;
    }
    return n;
}

me_status me_perfetto_clock_init(me_perfetto_clock *clock,
                                 const me_memory_trace *trace,
                                 int32_t iteration, const me_time_stage *stage,
                                 int64_t step_ns)
{
    uint32_t n_marks = 0;
    uint32_t n_entries = 0;
    uint32_t next = 0;
    uint32_t done = 0;
    uint32_t before = 0; // entries of the iteration among those done
    const me_trace_mark *marks = me_memory_trace_marks(trace, &n_marks);
    const me_time_span *span = NULL;
    (void)me_memory_trace_entries(trace, &n_entries);
    me_status status = add_anchor(clock, 0, 0);
    for (uint32_t i = 0; status == ME_OK && i < n_marks; i++) {
        const me_event *e = &marks[i].event;
        before += count_calls(trace, iteration, done, marks[i].at);
        done = marks[i].at > done ? marks[i].at : done;
        if (e->kind == ME_EVENT_ACTION_BEGIN) {
            span = find_span(stage, &next, e);
            status = span == NULL
                         ? ME_OK
                         : add_anchor(clock, before + i, span->start_ns);
        } else if (e->kind == ME_EVENT_ACTION_END && span != NULL) {
            status = add_anchor(clock, before + i, span->end_ns);
            span = NULL;
        }
    }
    before += count_calls(trace, iteration, done, n_entries);
    const uint32_t n = before + n_marks;
    return status == ME_OK
               ? add_anchor(clock, n,
                            stage == NULL ? n * INT64_C(1000) : step_ns)
               : status;
}

void me_perfetto_clock_fini(me_perfetto_clock *clock)
{
    me_free(clock->anchors);
}

int64_t me_perfetto_time(const me_perfetto_clock *clock, uint32_t at)
{
    uint32_t low = 0;
    uint32_t high = clock->n_anchors - 1;
    while (low < high) { // the last one that is not behind it
        const uint32_t middle = low + (high - low + 1) / 2;
        if (clock->anchors[middle].at <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    const me_perfetto_anchor *a = &clock->anchors[low];
    if (low + 1 == clock->n_anchors) {
        return a->ns;
    }
    const me_perfetto_anchor *b = &clock->anchors[low + 1];
    return a->ns +
           (int64_t)((double)(b->ns - a->ns) * (at - a->at) / (b->at - a->at));
}
