/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/strand_tape.h"

#include "base/alloc.h"
#include "tensor/engine_private.h"

#include <string.h>

enum {
    FULL = 1 << 12, /* entries of which a piece is told */
    FULL_IDS = 1 << 16
};

typedef enum entry_kind {
    ENTRY_EVENT,
    ENTRY_EXCHANGE,
    ENTRY_REPEATED,
    ENTRY_STRETCH,
    ENTRY_ALONE,
    ENTRY_REPEATED_END
} entry_kind;

/** A script as it was told. */
typedef struct told {
    me_repeated action;
    me_telling telling; /**< but for its ids */
    uint32_t ids_begin;
} told;

typedef struct entry {
    entry_kind kind;

    union {
        me_event event;
        me_exchange_event exchange;
        told told;
        uint32_t stretch;
    };
} entry;

struct me_strand_tape {
    entry *entries; /**< owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t *ids; /**< of the blocks of scripts; owned */
    uint32_t n_ids;
    uint32_t ids_capacity;
    uint32_t repeated; /**< the entry of the script that is told */
    bool is_telling;
};

void me_strand_tape_destroy(me_strand_tape *tape)
{
    if (tape != NULL) {
        me_free(tape->entries);
        me_free(tape->ids);
        me_free(tape);
    }
}

/** Is there somebody to keep something for? */
static bool keeps(const me_engine *e)
{
    return e->n_observers > e->n_first_observers && e->strand == ME_STRANDS_ALL;
}

/** The tape that is written on; NULL: nothing is kept. */
static me_strand_tape *tape_of(me_engine *e)
{
    if (keeps(e) && e->strand_tape == NULL) {
        e->strand_tape = me_alloc(1, sizeof *e->strand_tape, "engine.strands");
        if (e->strand_tape == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for ranks");
        }
    }
    return keeps(e) ? e->strand_tape : NULL;
}

static entry *add(me_engine *e, entry_kind kind)
{
    me_strand_tape *tape = tape_of(e);
    if (tape == NULL) {
        return NULL;
    }
    if ((tape->count >= FULL || tape->n_ids >= FULL_IDS) && !tape->is_telling) {
        me_strand_tell(e);
    }
    entry *larger =
        me_engine_grow(e, tape->entries, tape->count, &tape->capacity,
                       sizeof *larger, "engine.strands");
    if (larger == NULL) {
        return NULL;
    }
    tape->entries = larger;
    entry *x = &larger[tape->count++];
    x->kind = kind;
    return x;
}

void me_strand_keep_event(me_engine *e, const me_event *event)
{
    entry *x = add(e, ENTRY_EVENT);
    if (x != NULL) {
        x->event = *event;
    }
}

void me_strand_keep_exchange(me_engine *e, const me_exchange_event *exchange)
{
    entry *x = add(e, ENTRY_EXCHANGE);
    if (x != NULL) {
        x->exchange = *exchange;
    }
}

void me_strand_keep_repeated(me_engine *e, const me_telling *telling,
                             const me_repeated *action)
{
    entry *x = add(e, ENTRY_REPEATED);
    if (x != NULL) {
        x->told = (told){.action = *action, .telling = *telling};
        e->strand_tape->repeated = e->strand_tape->count - 1;
        e->strand_tape->is_telling = true;
    }
}

void me_strand_keep_stretch(me_engine *e, uint32_t index)
{
    entry *x = add(e, ENTRY_STRETCH);
    if (x != NULL) {
        x->stretch = index;
    }
}

void me_strand_keep_alone(me_engine *e, const me_event *event)
{
    entry *x = add(e, ENTRY_ALONE);
    if (x != NULL) {
        x->event = *event;
    }
}

/** A copy of the ids of a script's blocks. */
static void keep_ids(me_engine *e, me_strand_tape *tape, told *x)
{
    const uint32_t n = x->telling.script->n_slots;
    while (tape->n_ids + n > tape->ids_capacity) {
        uint32_t *larger = me_engine_grow(e, tape->ids, tape->ids_capacity,
                                          &tape->ids_capacity, sizeof *larger,
                                          "engine.strands");
        if (larger == NULL) {
            return;
        }
        tape->ids = larger;
    }
    x->ids_begin = tape->n_ids;
    memcpy(tape->ids + tape->n_ids, x->telling.ids, n * sizeof *tape->ids);
    tape->n_ids += n;
}

void me_strand_keep_repeated_end(me_engine *e)
{
    entry *x = add(e, ENTRY_REPEATED_END);
    if (x != NULL) {
        me_strand_tape *tape = e->strand_tape;
        keep_ids(e, tape, &tape->entries[tape->repeated].told);
        tape->is_telling = false;
    }
}

/** Observers of one strand, which follow each other, and what they want of the
 *  script that is told. */
typedef struct listeners {
    const me_observer *observers;
    uint32_t count;
    uint32_t kinds[ME_MAX_OBSERVERS];
    me_telling telling;
} listeners;

static void begin_repeated(const me_strand_tape *tape, const told *x,
                           listeners *l)
{
    l->telling = x->telling;
    l->telling.ids = tape->ids + x->ids_begin;
    for (uint32_t i = 0; i < l->count; i++) {
        const me_observer *o = &l->observers[i];
        l->kinds[i] = (o->kinds | ME_REPEATED_PASSING) &
                      o->on_repeated(o->self, &x->action);
    }
}

static void tell_event(const listeners *l, const me_event *event, bool is_alone)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const me_observer *o = &l->observers[i];
        const uint32_t kinds = is_alone ? l->kinds[i] : o->kinds;
        if ((kinds & ME_EVENT_BIT(event->kind)) != 0) {
            o->on_event(o->self, event);
        }
    }
}

static void tell_exchange(const listeners *l, const me_exchange_event *exchange)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const me_observer *o = &l->observers[i];
        if ((o->kinds & ME_EVENT_BIT(ME_EVENT_COLLECTIVE)) != 0) {
            o->on_exchange(o->self, exchange);
        }
    }
}

static void end_repeated(const listeners *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->observers[i].on_repeated_end != NULL) {
            l->observers[i].on_repeated_end(l->observers[i].self);
        }
    }
}

static void tell_entry(const me_strand_tape *tape, const entry *x, listeners *l)
{
    switch (x->kind) {
    case ENTRY_EVENT: tell_event(l, &x->event, false); break;
    case ENTRY_ALONE: tell_event(l, &x->event, true); break;
    case ENTRY_EXCHANGE: tell_exchange(l, &x->exchange); break;
    case ENTRY_REPEATED: begin_repeated(tape, &x->told, l); break;
    case ENTRY_REPEATED_END: end_repeated(l); break;
    case ENTRY_STRETCH:
        for (uint32_t i = 0; i < l->count; i++) {
            me_telling_stretch(&l->telling, &l->observers[i], l->kinds[i],
                               x->stretch);
        }
        break;
    }
}

void me_strand_tell(me_engine *e)
{
    me_strand_tape *tape = e->strand_tape;
    if (tape == NULL || tape->count == 0) {
        return;
    }
    for (uint32_t i = e->n_first_observers; i < e->n_observers;) {
        listeners l = {.observers = &e->observers[i]};
        while (i < e->n_observers &&
               e->strand_of[i] == e->strand_of[i - l.count]) {
            l.count++;
            i++;
        }
        for (uint32_t k = 0; k < tape->count && me_engine_is_ok(e); k++) {
            tell_entry(tape, &tape->entries[k], &l);
        }
    }
    tape->count = 0;
    tape->n_ids = 0;
}
