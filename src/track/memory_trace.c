/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/memory_trace.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <string.h>

/** No place, no entry. */
#define NONE UINT32_MAX

enum {
    N_BUCKETS = 1 << 12 /* of places, chained */
};

struct me_memory_trace {
    me_status status; /**< the first failure */
    me_trace_place now;
    bool keeps_marks;
    int32_t iteration; /**< of the marks */
    me_trace_entry *entries;
    uint32_t n_entries;
    uint32_t entry_capacity;
    me_trace_place *places;
    uint32_t *next_place; /**< in the same bucket */
    uint32_t n_places;
    uint32_t place_capacity;
    uint32_t next_capacity;
    uint32_t *made_at; /**< by id of the block: its entry */
    uint32_t n_blocks;
    me_trace_mark *marks;
    uint32_t n_marks;
    uint32_t mark_capacity;
    uint32_t buckets[N_BUCKETS];
};

me_memory_trace *me_memory_trace_create(void)
{
    me_memory_trace *t = me_alloc(1, sizeof *t, "track.trace");
    if (t != NULL) {
        memset(t->buckets, 0xff, sizeof t->buckets);
    }
    return t;
}

void me_memory_trace_destroy(me_memory_trace *trace)
{
    if (trace != NULL) {
        me_free(trace->entries);
        me_free(trace->places);
        me_free(trace->next_place);
        me_free(trace->made_at);
        me_free(trace->marks);
        me_free(trace);
    }
}

void me_memory_trace_keep_marks(me_memory_trace *trace, int32_t iteration)
{
    trace->keeps_marks = true;
    trace->iteration = iteration;
}

static void lose(me_memory_trace *t)
{
    t->status = ME_ERR_NOMEM;
}

static uint32_t bucket_of(const me_trace_place *p)
{
    uint32_t h = p->module * 31U + (uint32_t)p->iteration;
    h = h * 31U + (uint32_t)p->microbatch;
    h = h * 31U + p->phase;
    h = h * 31U + p->category;
    h = h * 31U + (uint32_t)((uintptr_t)p->op >> 3U);
    return (h ^ h >> 12U) % N_BUCKETS;
}

static bool is_same(const me_trace_place *a, const me_trace_place *b)
{
    return a->op == b->op && a->module == b->module &&
           a->iteration == b->iteration && a->microbatch == b->microbatch &&
           a->phase == b->phase && a->category == b->category;
}

/** The number of a place; NONE without memory. */
static uint32_t find_place(me_memory_trace *t, const me_trace_place *place)
{
    uint32_t *first = &t->buckets[bucket_of(place)];
    for (uint32_t i = *first; i != NONE; i = t->next_place[i]) {
        if (is_same(&t->places[i], place)) {
            return i;
        }
    }
    me_trace_place *places = me_grow(t->places, t->n_places, &t->place_capacity,
                                     sizeof *places, "track.trace");
    if (places == NULL) {
        return NONE;
    }
    t->places = places;
    uint32_t *next = me_grow(t->next_place, t->n_places, &t->next_capacity,
                             sizeof *next, "track.trace");
    if (next == NULL) {
        return NONE;
    }
    t->next_place = next;
    t->places[t->n_places] = *place;
    t->next_place[t->n_places] = *first;
    *first = t->n_places;
    return t->n_places++;
}

void me_memory_trace_on_pool(void *self, const me_pool_trace *entry)
{
    me_memory_trace *t = self;
    const uint32_t place = find_place(t, &t->now);
    me_trace_entry *entries =
        me_grow(t->entries, t->n_entries, &t->entry_capacity, sizeof *entries,
                "track.trace");
    if (entries == NULL || place == NONE) {
        t->entries = entries == NULL ? t->entries : entries;
        lose(t);
        return;
    }
    t->entries = entries;
    t->entries[t->n_entries++] = (me_trace_entry){*entry, place};
}

/** The allocation is the next entry of that kind: segments may come first, so
 *  it is looked for when the block becomes something else. */
static void note_block(me_memory_trace *t, uint32_t block, bool has_entry)
{
    if (block >= t->n_blocks) {
        const uint32_t n = (block + 1) * 2;
        uint32_t *grown =
            me_realloc(t->made_at, n, sizeof *grown, "track.trace");
        if (grown == NULL) {
            lose(t);
            return;
        }
        memset(grown + t->n_blocks, 0xff, (n - t->n_blocks) * sizeof *grown);
        t->made_at = grown;
        t->n_blocks = n;
    }
    t->made_at[block] = has_entry ? t->n_entries : NONE;
}

static void recategorize(me_memory_trace *t, const me_event *event)
{
    uint32_t i = event->block < t->n_blocks ? t->made_at[event->block] : NONE;
    while (i < t->n_entries &&
           t->entries[i].trace.action != ME_POOL_TRACE_ALLOC) {
        i++;
    }
    if (i >= t->n_entries) {
        return; // a block of no bytes
    }
    me_trace_place place = t->places[t->entries[i].place];
    place.category = event->category;
    const uint32_t found = find_place(t, &place);
    if (found == NONE) {
        lose(t);
        return;
    }
    t->entries[i].place = found;
}

static void keep_mark(me_memory_trace *t, const me_event *event)
{
    me_trace_mark *marks = me_grow(t->marks, t->n_marks, &t->mark_capacity,
                                   sizeof *marks, "track.trace");
    if (marks == NULL) {
        lose(t);
        return;
    }
    t->marks = marks;
    t->marks[t->n_marks++] = (me_trace_mark){*event, t->n_entries};
}

static bool is_of_block(me_event_kind kind)
{
    return kind == ME_EVENT_ALLOC || kind == ME_EVENT_FREE_REQUESTED ||
           kind == ME_EVENT_FREE_COMPLETED || kind == ME_EVENT_RECATEGORIZE;
}

static void on_event(void *self, const me_event *event)
{
    me_memory_trace *t = self;
    t->now = (me_trace_place){
        .op = event->op,
        .module = event->module,
        .iteration = event->iteration,
        .microbatch = event->microbatch,
        .phase = event->phase,
        .category = event->category,
    };
    if (event->kind == ME_EVENT_ALLOC) {
        note_block(t, event->block, event->bytes > 0);
    } else if (event->kind == ME_EVENT_RECATEGORIZE) {
        recategorize(t, event);
    } else if (t->keeps_marks && !is_of_block(event->kind) &&
               event->iteration == t->iteration) {
        keep_mark(t, event);
    }
}

me_observer me_memory_trace_observer(me_memory_trace *trace)
{
    return (me_observer){.on_event = on_event, .self = trace};
}

me_status me_memory_trace_status(const me_memory_trace *trace)
{
    return trace->status;
}

const me_trace_entry *me_memory_trace_entries(const me_memory_trace *trace,
                                              uint32_t *n_out)
{
    *n_out = trace->n_entries;
    return trace->entries;
}

const me_trace_place *me_memory_trace_places(const me_memory_trace *trace,
                                             uint32_t *n_out)
{
    *n_out = trace->n_places;
    return trace->places;
}

const me_trace_mark *me_memory_trace_marks(const me_memory_trace *trace,
                                           uint32_t *n_out)
{
    *n_out = trace->n_marks;
    return trace->marks;
}
