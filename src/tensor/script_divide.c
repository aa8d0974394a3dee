/* SPDX-License-Identifier: BSD-3-Clause */
/* Divides a script into stretches, within which no observer reads another's
 * state: each is told a whole stretch before the next one is, and those that
 * follow blocks alone get a list of small records. */
#include "base/alloc.h"
#include "tensor/script.h"

/** A script on its way into stretches. */
typedef struct divider {
    const me_script *script;
    me_script_stretches out;
    me_script_stretch end; /**< how far the lists reach now */
    uint32_t *late;        /**< events that ask for frees which the next alloc
                                completes */
    uint32_t n_late;
    uint32_t n_held;     /**< of them, before the last event that comes alone */
    bool may_be_pending; /**< what others have freed, for the next alloc */
} divider;

/** What comes after the events so far. */
static void end_stretch(divider *d, uint32_t event)
{
    d->end.event = event;
    d->out.items[d->out.count++] = d->end;
    d->end.completes = false;
}

static void add_op(divider *d, me_block_change change, uint32_t event)
{
    const me_script_event *x = &d->script->events[event];
    d->out.op_events[d->end.ops_end] = event;
    d->out.ops[d->end.ops_end++] = (me_block_op){
        .bytes = x->event.bytes,
        .slot = x->slot,
        .change = (uint8_t)change,
        .stream = x->event.stream,
        .mempool = x->event.mempool,
        .is_late = x->event.is_late,
        .is_input = x->event.category == ME_CATEGORY_INPUT,
    };
}

static bool is_module(const me_event *event)
{
    return event->kind == ME_EVENT_MODULE_ENTER ||
           event->kind == ME_EVENT_MODULE_LEAVE;
}

static void add_step(divider *d, uint32_t event, bool completes)
{
    const me_script_event *x = &d->script->events[event];
    const me_script_step step = {event, completes};
    d->out.steps[d->end.steps_end++] = step;
    if (!x->passes && !is_module(&x->event)) {
        d->out.lasting[d->end.lasting_end++] = step;
    }
}

/** Must the event be told by itself, because observers read each other there or
 * the caller has to act? */
static bool comes_alone(const me_script_event *x)
{
    return x->turn != ME_SCRIPT_EVENT || x->drop != ME_SCRIPT_NO_DROP ||
           me_event_ends_span(&x->event) ||
           (x->slot < ME_SCRIPT_INPUTS &&
            x->event.kind == ME_EVENT_FREE_REQUESTED);
}

/** Frees that are pending complete as it is made, in the order in which they
 *  were asked for. */
static void add_alloc(divider *d, uint32_t event)
{
    if (d->may_be_pending) {
        end_stretch(d, ME_SCRIPT_NO_EVENT);
        d->end.completes = true;
        d->may_be_pending = false;
    }
    for (uint32_t i = 0; i < d->n_late; i++) {
        add_op(d, ME_BLOCK_FREE_COMPLETED, d->late[i]);
        add_step(d, d->late[i], true);
    }
    d->n_late = 0;
    add_op(d, ME_BLOCK_ALLOC, event);
    add_step(d, event, false);
}

static void add_free(divider *d, uint32_t event)
{
    const me_script_event *x = &d->script->events[event];
    if (x->is_late) {
        d->late[d->n_late++] = event;
    }
    add_op(d, x->is_late ? ME_BLOCK_FREE_REQUESTED : ME_BLOCK_FREE, event);
    add_step(d, event, false);
}

/** What is asked for so far is held by the engine until an alloc comes. */
static void hold_late(divider *d)
{
    uint32_t n = d->end.ops_end;
    for (uint32_t i = d->n_late; i > 0; i--) {
        while (d->out.op_events[n - 1] != d->late[i - 1]) {
            n--;
        }
        d->out.holds[n - 1] = true;
    }
    d->may_be_pending = d->may_be_pending || d->n_late > 0;
    d->n_late = 0;
}

static void add_event(divider *d, uint32_t event)
{
    const me_script_event *x = &d->script->events[event];
    d->out.goes_back = d->out.goes_back || x->turn == ME_SCRIPT_BACK;
    if (comes_alone(x)) {
        if (x->slot != ME_SCRIPT_NO_SLOT || x->drop != ME_SCRIPT_NO_DROP) {
            hold_late(d); // its own free may be late as well
            d->may_be_pending = true;
        }
        end_stretch(d, event);
    } else if (x->event.kind == ME_EVENT_ALLOC) {
        add_alloc(d, event);
    } else if (x->event.kind == ME_EVENT_FREE_REQUESTED) {
        add_free(d, event);
    } else {
        add_step(d, event, false); // a completed free has its op already
    }
}

static bool make_room(divider *d)
{
    size_t n = d->script->n_events;
    size_t n_late = 0;
    size_t n_alone = 0;
    for (uint32_t i = 0; i < d->script->n_events; i++) {
        const me_script_event *x = &d->script->events[i];
        n_late += x->is_late;
        n_alone += comes_alone(x);
    }
    n += n_late; // their completion is an event more
    me_script_stretches *out = &d->out;
    // Before what stands alone, after it up to the next alloc, the last.
    out->items =
        me_alloc(2 * n_alone + 2, sizeof *out->items, "script.stretches");
    out->ops = me_alloc(n, sizeof *out->ops, "script.ops");
    out->op_events = me_alloc(n, sizeof *out->op_events, "script.ops");
    out->holds = me_alloc(n, sizeof *out->holds, "script.ops");
    out->steps = me_alloc(n, sizeof *out->steps, "script.steps");
    out->lasting = me_alloc(n, sizeof *out->lasting, "script.steps");
    d->late = me_alloc(n_late, sizeof *d->late, "script.late");
    return out->items != NULL && out->ops != NULL && out->op_events != NULL &&
           out->holds != NULL && out->steps != NULL && out->lasting != NULL &&
           d->late != NULL;
}

bool me_script_divide(me_script *s)
{
    if (s->stretches.items != NULL) {
        return true;
    }
    divider d = {.script = s, .may_be_pending = true};
    const bool has_room = make_room(&d);
    if (has_room) {
        for (uint32_t i = 0; i < s->n_events; i++) {
            add_event(&d, i);
        }
        hold_late(&d);
        end_stretch(&d, ME_SCRIPT_NO_EVENT);
        s->stretches = d.out;
    } else {
        me_script_stretches_fini(&d.out);
    }
    me_free(d.late);
    return has_room;
}

void me_script_stretches_fini(me_script_stretches *stretches)
{
    me_free(stretches->items);
    me_free(stretches->ops);
    me_free(stretches->op_events);
    me_free(stretches->holds);
    me_free(stretches->steps);
    me_free(stretches->lasting);
    *stretches = (me_script_stretches){.items = NULL};
}
