/* SPDX-License-Identifier: BSD-3-Clause */
/* Records an action and makes a script of it. */
#include "base/alloc.h"
#include "tensor/engine_private.h"
#include "tensor/script.h"
#include "tensor/script_reader.h"
#include "tensor/strand_tape.h"

#include <string.h>

enum {
    FIRST_EVENTS = 4096,
    DEPTH_MAX = 32 /**< of modules in one another */
};

static bool is_module(const me_event *event)
{
    return event->kind == ME_EVENT_MODULE_ENTER ||
           event->kind == ME_EVENT_MODULE_LEAVE;
}

void me_record_event(me_engine *e, const me_event *event)
{
    me_recording *r = &e->recording;
    if (r->count == r->capacity) {
        const uint32_t capacity =
            r->capacity == 0 ? FIRST_EVENTS : r->capacity * 2;
        me_event *events =
            me_realloc(r->events, capacity, sizeof *events, "script.events");
        if (events == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an action");
            r->is_on = false;
            return;
        }
        r->events = events;
        r->capacity = capacity;
    }
    r->has_module = r->has_module || is_module(event);
    r->events[r->count++] = *event;
}

void me_script_begin(me_engine *e)
{
    me_recording *r = &e->recording;
    me_strand_tell(e); // what was recorded before may go
    r->is_on = me_engine_is_ok(e);
    r->count = 0;
    r->n_keepings = 0;
    r->module = e->module;
    r->has_module = false;
    r->lead.is_there = false;
    r->last.is_there = false;
    r->n_switches = 0;
    r->stays_outer = false;
    r->is_round = false;
    r->place = me_script_place(e);
    memcpy(r->work, e->work, sizeof r->work);
}

void me_script_begin_round(me_engine *e, int32_t microbatch)
{
    me_script_begin(e);
    e->recording.is_round = true;
    e->recording.microbatch = microbatch;
}

static bool has_block(const me_event *event)
{
    return event->kind == ME_EVENT_ALLOC ||
           event->kind == ME_EVENT_FREE_REQUESTED ||
           event->kind == ME_EVENT_FREE_COMPLETED ||
           event->kind == ME_EVENT_RECATEGORIZE;
}

/** The slots of all block ids there are, none yet. */
static bool clear_slots(me_engine *e)
{
    me_recording *r = &e->recording;
    if (r->n_slots < e->blocks.next) {
        uint32_t *slots =
            me_realloc(r->slots, e->blocks.next, sizeof *slots, "script.slots");
        if (slots == NULL) {
            return false;
        }
        r->slots = slots;
        r->n_slots = e->blocks.next;
    }
    memset(r->slots, 0xff, r->n_slots * sizeof *r->slots);
    return true;
}

static void find_slots(me_script_reader *r)
{
    me_script_bind(r->script, r->inputs);
    uint32_t *slots = r->e->recording.slots;
    for (uint32_t i = 0; i < ME_SCRIPT_INPUTS; i++) {
        if (r->inputs->tensors[i] != NULL) {
            slots[r->inputs->blocks[i]] = i;
        }
    }
    for (uint32_t i = 0; i < r->inputs->kept->count; i++) {
        slots[r->inputs->kept->ids[i]] = ME_SCRIPT_INPUTS + i;
    }
    r->script->n_inputs = ME_SCRIPT_INPUTS + r->inputs->kept->count;
    r->script->n_slots = r->script->n_inputs;
}

static void add_mark(me_script_reader *r)
{
    r->script->marks[r->script->n_marks++] =
        (me_repeat_mark){r->level, r->peak, !r->script->allocates};
    r->peak = r->level;
}

me_script_event *me_script_add_event(me_script_reader *r, const me_event *event,
                                     uint32_t slot)
{
    me_script_event *added = &r->script->events[r->script->n_events++];
    *added = (me_script_event){.event = *event, .slot = slot};
    added->event.iteration = 0;
    added->event.microbatch = 0;
    if (r->e->recording.is_round) {
        added->is_apart = event->microbatch == ME_NO_MICROBATCH;
        added->microbatch =
            added->is_apart ? 0
                            : event->microbatch - r->e->recording.microbatch;
    }
    added->event.block = 0;
    added->is_outer = r->is_outer && !is_module(event);
    added->event.module = added->is_outer ? ME_NO_MODULE : event->module;
    return added;
}

static void read_alloc(me_script_reader *r, const me_event *event)
{
    const uint32_t slot = r->script->n_slots++;
    r->script->ids[slot] = event->block;
    r->e->recording.slots[event->block] = slot;
    r->birth[slot] = r->script->n_events;
    (void)me_script_add_event(r, event, slot);
    r->script->allocates = true;
    r->level += (int64_t)event->bytes;
    r->peak = r->peak > r->level ? r->peak : r->level;
}

/** What was asked for before the action completes with its first allocation:
 *  that is no event of its own. */
static void read_completed(me_script_reader *r, const me_event *event,
                           uint32_t slot)
{
    if (slot == ME_SCRIPT_NO_SLOT) {
        r->is_sound = r->is_sound && !r->script->allocates;
        return;
    }
    const uint32_t asked = r->asked[slot];
    if (asked == UINT32_MAX) {
        r->is_sound = false;
        return;
    }
    r->level -= (int64_t)event->bytes;
    r->is_gone[slot] = true;
    r->e->recording.slots[event->block] = ME_SCRIPT_NO_SLOT;
    if (slot < ME_SCRIPT_INPUTS) {
        return; // its release says the rest
    }
    if (r->script->events[asked].event.is_late) {
        r->script->events[asked].is_late = true;
        return;
    }
    (void)me_script_add_event(r, event, slot);
    if (slot >= r->script->n_inputs) {
        r->script->events[r->birth[slot]].passes = true;
    }
}

static void read_event(me_script_reader *r, const me_event *event)
{
    r->is_outer = r->is_outer && !is_module(event);
    if (is_module(event) && !r->script->allocates) {
        r->script->enters_first = true;
    }
    if (!has_block(event)) {
        (void)me_script_add_event(r, event, ME_SCRIPT_NO_SLOT);
        if (me_event_ends_span(event)) {
            add_mark(r);
        }
        return;
    }
    if (event->kind == ME_EVENT_ALLOC) {
        read_alloc(r, event);
        return;
    }
    const uint32_t slot = r->e->recording.slots[event->block];
    if (me_script_read_shared_free(r, event, slot)) {
        return;
    }
    if (event->kind == ME_EVENT_FREE_COMPLETED) {
        read_completed(r, event, slot);
    } else if (slot == ME_SCRIPT_NO_SLOT) {
        r->is_sound = false;
    } else {
        if (event->kind == ME_EVENT_FREE_REQUESTED) {
            r->asked[slot] = r->script->n_events;
        } else if (slot < ME_SCRIPT_INPUTS) {
            r->script->is_recategorized[slot] = true;
            r->script->category[slot] = event->category;
        }
        (void)me_script_add_event(r, event, slot);
    }
}

static void add_turn(me_script_reader *r, me_script_turn turn,
                     me_module_id module)
{
    me_script_event *added = me_script_add_event(
        r, &(me_event){.kind = ME_EVENT_MODULE_ENTER, .module = module},
        ME_SCRIPT_NO_SLOT);
    added->turn = (uint8_t)turn;
    if (!r->script->allocates) {
        r->script->enters_first = true;
    }
    r->is_outer = turn == ME_SCRIPT_BACK;
}

/** All events of a round, at whose ends the same module runs. */
static void read_round(me_script_reader *r)
{
    const me_recording *x = &r->e->recording;
    for (uint32_t i = 0; i < x->count && r->is_sound; i++) {
        read_event(r, &x->events[i]);
    }
    r->is_sound = r->is_sound && r->e->module == x->module;
    r->script->module = x->module;
    r->script->module_after = x->module;
    r->script->has_actions = true;
}

/** All events, with the two switches from and to the program's module left to
 *  when they are told. */
static void read_events(me_script_reader *r, bool restores)
{
    const me_recording *x = &r->e->recording;
    r->is_outer = true;
    r->script->stays_outer = x->stays_outer;
    r->is_sound =
        r->is_sound && (!restores || (x->n_switches > 1 && x->lead.is_there &&
                                      x->last.to == x->module));
    for (uint32_t i = 0; i <= x->count && r->is_sound; i++) {
        while (r->n_keepings < x->n_keepings &&
               x->keepings[r->n_keepings].at <= i) {
            me_script_read_keeping(r, &x->keepings[r->n_keepings++]);
        }
        if (x->lead.is_there && i == x->lead.begin) {
            add_turn(r, ME_SCRIPT_THERE, x->lead.to);
            i = x->lead.end;
        }
        if (restores && i == x->last.begin) {
            add_turn(r, ME_SCRIPT_BACK, x->last.from);
            i = x->last.end;
        }
        if (i < x->count) {
            read_event(r, &x->events[i]);
        }
    }
    r->script->module = x->module;
    r->script->module_after = r->e->module;
}

/** Does it leave what it enters, and nothing else? */
static bool is_balanced(const me_recording *x)
{
    uint32_t open[DEPTH_MAX];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const me_event *event = &x->events[i];
        if (event->kind == ME_EVENT_MODULE_ENTER) {
            if (depth == DEPTH_MAX) {
                return false;
            }
            open[depth++] = event->module;
        } else if (event->kind == ME_EVENT_MODULE_LEAVE) {
            if (depth == 0 || open[depth - 1] != event->module) {
                return false;
            }
            depth--;
        }
    }
    return depth == 0;
}

/** Counts of all modules, none yet. */
static bool clear_entered(me_engine *e)
{
    me_recording *r = &e->recording;
    if (r->n_modules < e->tree.count) {
        int32_t *entered = me_realloc(r->entered, e->tree.count,
                                      sizeof *entered, "script.entered");
        if (entered == NULL) {
            return false;
        }
        r->entered = entered;
        r->n_modules = e->tree.count;
    }
    memset(r->entered, 0, r->n_modules * sizeof *r->entered);
    return true;
}

/** Modules that the events enter and leave unequally often; the turns do so
 *  anew each time. @return false without memory */
static bool list_entered(me_script_reader *r)
{
    me_script *s = r->script;
    int32_t *times = r->e->recording.entered;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_events; i++) {
        const me_script_event *x = &s->events[i];
        if (x->turn == ME_SCRIPT_EVENT && is_module(&x->event)) {
            int32_t *own = &times[x->event.module];
            const int32_t before = *own;
            *own += x->event.kind == ME_EVENT_MODULE_ENTER ? 1 : -1;
            n += (uint32_t)(*own != 0) - (uint32_t)(before != 0);
        }
    }
    s->entered = me_alloc(n, sizeof *s->entered, "script.entered");
    for (uint32_t m = 0; s->entered != NULL && s->n_entered < n; m++) {
        if (times[m] != 0) {
            s->entered[s->n_entered++] = (me_script_entered){m, times[m]};
        }
    }
    return s->entered != NULL;
}

/** A slot's blocks pass if its birth says so; frees that are asked for and not
 *  completed are late. */
static void settle(me_script_reader *r)
{
    me_script *s = r->script;
    for (uint32_t i = 0; i < s->n_events; i++) {
        me_script_event *x = &s->events[i];
        if (x->slot == ME_SCRIPT_NO_SLOT || x->drop != ME_SCRIPT_NO_DROP) {
            continue;
        }
        x->passes =
            x->slot >= s->n_inputs && s->events[r->birth[x->slot]].passes;
        if (x->event.kind == ME_EVENT_FREE_REQUESTED &&
            x->slot >= ME_SCRIPT_INPUTS && !r->is_gone[x->slot]) {
            x->is_late = true;
        }
    }
    for (uint32_t i = 0; i < ME_SCRIPT_INPUTS; i++) {
        s->is_freed[i] = r->asked[i] != UINT32_MAX;
    }
    add_mark(r);
    s->place = r->e->recording.place;
    s->is_balanced = is_balanced(&r->e->recording);
    for (int i = 0; i < ME_PHASE_COUNT; i++) {
        s->work[i] =
            (me_work){r->e->work[i].flops - r->e->recording.work[i].flops,
                      r->e->work[i].bytes - r->e->recording.work[i].bytes};
    }
}

static bool is_among(const uint32_t *slots, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i] == slot) {
            return true;
        }
    }
    return false;
}

/** What lives on and was not handed out is the micro-batch's. */
static void list_kept(me_script_reader *r, const me_storage *const *handed_out,
                      uint32_t *slots_out)
{
    me_script *s = r->script;
    uint32_t n_out = 0;
    for (; handed_out[n_out] != NULL; n_out++) {
        slots_out[n_out] = r->e->recording.slots[handed_out[n_out]->block];
        r->is_sound = r->is_sound && slots_out[n_out] >= s->n_inputs &&
                      slots_out[n_out] != ME_SCRIPT_NO_SLOT;
    }
    for (uint32_t slot = ME_SCRIPT_INPUTS; slot < s->n_slots; slot++) {
        if (r->asked[slot] == UINT32_MAX && !is_among(slots_out, n_out, slot)) {
            s->kept[s->n_kept++] = slot;
        }
    }
}

/** Room for everything that so many events can lead to. */
static bool make_room(me_script_reader *r, me_script *s, size_t n_events)
{
    const size_t n_slots = n_events + r->inputs->kept->count + ME_SCRIPT_INPUTS;
    s->events = me_alloc(n_events + 2, sizeof *s->events, "script.events");
    s->marks = me_alloc(n_events + 1, sizeof *s->marks, "script.marks");
    s->ids = me_alloc(n_slots, sizeof *s->ids, "script.ids");
    s->kept = me_alloc(n_slots, sizeof *s->kept, "script.kept");
    r->birth = me_alloc(n_slots, sizeof *r->birth, "script.birth");
    r->asked = me_alloc(n_slots, sizeof *r->asked, "script.asked");
    r->is_gone = me_alloc(n_slots, sizeof *r->is_gone, "script.gone");
    const bool has_room = s->events != NULL && s->marks != NULL &&
                          s->ids != NULL && s->kept != NULL &&
                          r->birth != NULL && r->asked != NULL &&
                          r->is_gone != NULL;
    if (has_room) {
        memset(r->asked, 0xff, n_slots * sizeof *r->asked);
    }
    return has_room;
}

bool me_script_end(me_engine *e, bool restores, const me_script_inputs *inputs,
                   const me_storage *const *handed_out, uint32_t *slots_out,
                   me_script *script_out)
{
    me_script s = {.n_events = 0};
    me_script_reader r = {
        .e = e, .script = &s, .inputs = inputs, .let_go = ME_SCRIPT_NO_EVENT};
    const bool was_on = e->recording.is_on;
    e->recording.is_on = false;
    r.is_sound = was_on && me_script_place(e) == e->recording.place;
    if (!me_engine_is_ok(e) || !r.is_sound) {
        return false;
    }
    bool has_room =
        make_room(&r, &s, e->recording.count + e->recording.n_keepings) &&
        clear_slots(e) && clear_entered(e);
    if (has_room) {
        find_slots(&r);
        if (e->recording.is_round) {
            read_round(&r);
        } else {
            read_events(&r, restores);
        }
        has_room = list_entered(&r);
    }
    if (has_room && r.is_sound) {
        settle(&r);
        has_room = me_script_list_attributes(&r);
        list_kept(&r, handed_out, slots_out);
        me_script_find_kept(&r);
    }
    if (!has_room) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an action");
        r.is_sound = false;
    }
    me_free(r.birth);
    me_free(r.asked);
    me_free(r.is_gone);
    if (!r.is_sound) {
        me_script_fini(&s);
        return false;
    }
    *script_out = s;
    return true;
}
