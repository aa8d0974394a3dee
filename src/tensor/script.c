/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeats a recorded action. */
#include "tensor/script.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/engine_private.h"
#include "tensor/strand_tape.h"

#include <string.h>

/** Everything but tensors and the module that an action could depend on. */
uint64_t me_script_place(const me_engine *e)
{
    return (uint64_t)e->context.phase << 12 |
           (uint64_t)e->context.category << 8 |
           (uint64_t)e->context.is_drawn << 16 |
           (uint64_t)e->context.mempool << 17 |
           (uint64_t)e->context.stream << 4 | (uint64_t)e->context.thread << 1 |
           (uint64_t)e->context.is_recording;
}

bool me_script_can_tell(const me_engine *e)
{
    for (uint32_t i = 0; i < e->n_observers; i++) {
        if (e->observers[i].on_repeated == NULL) {
            return false;
        }
    }
    return e->n_hooks == 0 && !e->has_dispatch_mode;
}

void me_script_bind(me_script *s, const me_script_inputs *inputs)
{
    for (uint32_t i = 0; i < ME_SCRIPT_INPUTS; i++) {
        s->ids[i] = inputs->blocks[i];
    }
    if (inputs->kept->count > 0) {
        memcpy(s->ids + ME_SCRIPT_INPUTS, inputs->kept->ids,
               inputs->kept->count * sizeof *s->ids);
    }
}

static bool is_same_event(const me_script_event *a, const me_script_event *b)
{
    const me_event *x = &a->event;
    const me_event *y = &b->event;
    return a->slot == b->slot && a->passes == b->passes &&
           a->is_late == b->is_late && a->is_outer == b->is_outer &&
           a->turn == b->turn && a->drop == b->drop &&
           a->attribute == b->attribute && x->kind == y->kind &&
           x->category == y->category && x->old_category == y->old_category &&
           x->phase == y->phase && x->stream == y->stream &&
           x->mempool == y->mempool && x->collective == y->collective &&
           x->group == y->group && x->dtype == y->dtype &&
           x->is_lone == y->is_lone && x->is_scratch == y->is_scratch &&
           x->is_late == y->is_late && x->is_drawn == y->is_drawn &&
           x->is_shard == y->is_shard && x->peer == y->peer &&
           a->is_apart == b->is_apart && a->microbatch == b->microbatch &&
           (x->kind == ME_EVENT_POINT || x->name == y->name) &&
           (a->is_outer || x->module == y->module) && x->bytes == y->bytes &&
           x->count == y->count && x->op == y->op;
}

/** The next event that is no point, from @p at on; the end: none. */
static uint32_t skip_points(const me_script *s, uint32_t at)
{
    while (at < s->n_events && s->events[at].event.kind == ME_EVENT_POINT) {
        at++;
    }
    return at;
}

/** Does it end where it began, whatever that is? */
static bool has_back(const me_script *s)
{
    for (uint32_t i = s->n_events; i > 0; i--) {
        if (s->events[i - 1].turn == ME_SCRIPT_BACK) {
            return true;
        }
    }
    return false;
}

static bool has_same_attributes(const me_script *a, const me_script *b)
{
    bool is_same = a->n_attributes == b->n_attributes;
    for (uint32_t i = 0; is_same && i < a->n_attributes; i++) {
        const me_script_attribute *x = &a->attributes[i];
        const me_script_attribute *y = &b->attributes[i];
        is_same = x->attribute == y->attribute && x->slot == y->slot &&
                  x->kept == y->kept;
    }
    return is_same;
}

bool me_script_is_same(const me_script *a, const me_script *b)
{
    uint32_t i = skip_points(a, 0);
    uint32_t j = skip_points(b, 0);
    while (i < a->n_events && j < b->n_events) {
        if (!is_same_event(&a->events[i], &b->events[j])) {
            return false;
        }
        i = skip_points(a, i + 1);
        j = skip_points(b, j + 1);
    }
    return i == a->n_events && j == b->n_events && a->n_inputs == b->n_inputs &&
           a->n_slots == b->n_slots && a->n_kept == b->n_kept &&
           a->place == b->place && a->allocates == b->allocates &&
           a->enters_first == b->enters_first &&
           a->stays_outer == b->stays_outer &&
           (has_back(a) || a->module_after == b->module_after) &&
           memcmp(a->kept, b->kept, a->n_kept * sizeof *a->kept) == 0 &&
           memcmp(a->is_freed, b->is_freed, sizeof a->is_freed) == 0 &&
           memcmp(a->work, b->work, sizeof a->work) == 0 &&
           has_same_attributes(a, b);
}

/** What is freed with the next allocation. */
static uint64_t pending_bytes(const me_engine *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e->pending.count; i++) {
        bytes += e->pending.storages[i]->bytes;
    }
    return bytes;
}

/** Who is told of which kinds this time; bits by observer. */
static void begin_telling(const me_engine *e, const me_repeated *action,
                          uint32_t kinds[ME_MAX_OBSERVERS])
{
    for (uint32_t i = 0; i < e->n_first_observers; i++) {
        const me_observer *o = &e->observers[i];
        kinds[i] =
            (o->kinds | ME_REPEATED_PASSING) & o->on_repeated(o->self, action);
    }
}

static void end_telling(const me_engine *e)
{
    for (uint32_t i = 0; i < e->n_first_observers; i++) {
        if (e->observers[i].on_repeated_end != NULL) {
            e->observers[i].on_repeated_end(e->observers[i].self);
        }
    }
}

/** An object for a block that is freed late, of which there was none. */
static me_storage *late_storage(me_engine *e, const me_event *event)
{
    const me_storage like = {.bytes = event->bytes,
                             .category = event->category,
                             .stream = event->stream,
                             .mempool = event->mempool,
                             .module = event->module,
                             .is_late = true,
                             .is_scratch = event->is_scratch};
    return me_storage_adopt(e, &like, event->block);
}

/** What happens to blocks means for their ids, and for what stays pending. */
static void follow_blocks(me_engine *e, me_script *s, uint32_t from,
                          uint32_t to)
{
    const me_script_stretches *x = &s->stretches;
    for (uint32_t i = from; i < to; i++) {
        const me_block_op *op = &x->ops[i];
        if (op->change == ME_BLOCK_ALLOC) {
            s->ids[op->slot] = me_block_new(e);
        } else if (op->change != ME_BLOCK_FREE_REQUESTED) {
            me_block_forget(e, s->ids[op->slot]);
        } else if (x->holds[i]) {
            me_event event = s->events[x->op_events[i]].event;
            event.block = s->ids[op->slot];
            me_storage *storage = late_storage(e, &event);
            if (storage != NULL) {
                me_storage_hold_back(e, storage);
            }
        }
    }
}

/** A script that is told to the engine's observers. */
typedef struct telling {
    me_engine *e;
    me_telling told;
    const me_blocks *kept;
    uint32_t kinds[ME_MAX_OBSERVERS];
} telling;

/** From where the stretch before ended to where this one ends. */
static void tell_stretch(const telling *t, uint32_t index, uint32_t ops_begin)
{
    me_engine *e = t->e;
    const me_script_stretch *to = &t->told.script->stretches.items[index];
    if (to->completes && e->pending.count > 0) {
        me_complete_pending(e);
    }
    follow_blocks(e, t->told.script, ops_begin, to->ops_end);
    for (uint32_t i = 0; i < e->n_first_observers; i++) {
        me_telling_stretch(&t->told, &e->observers[i], t->kinds[i], index);
    }
    me_strand_keep_stretch(e, index);
}

/** Which modules run now that its events were told, and not run. */
static void follow_modules(me_engine *e, const me_script *s)
{
    for (uint32_t i = 0; i < s->n_entered; i++) {
        const me_script_entered *x = &s->entered[i];
        e->tree.modules[x->module].entered += (uint32_t)x->times;
    }
}

/** Into the script's modules, or back. */
static void turn(me_engine *e, const me_script *s, const me_script_event *x,
                 me_module_id outer)
{
    if (x->turn == ME_SCRIPT_BACK) {
        follow_modules(e, s);
        e->module = x->event.module;
    }
    me_module_switch(e, x->turn == ME_SCRIPT_BACK ? outer : x->event.module);
}

/** What its events make of the caller's blocks, which are freed as that. */
static void set_categories(const me_script *s, const me_script_inputs *inputs)
{
    for (uint32_t i = 0; i < ME_SCRIPT_INPUTS; i++) {
        if (s->is_recategorized[i] && inputs->tensors[i] != NULL) {
            inputs->tensors[i]->category = s->category[i];
        }
    }
}

static void add_work(me_engine *e, const me_script *s)
{
    for (int i = 0; i < ME_PHASE_COUNT; i++) {
        me_work *work = &e->work[i];
        work->flops = me_size_add(work->flops, s->work[i].flops);
        work->bytes = me_size_add(work->bytes, s->work[i].bytes);
    }
}

/** Somebody lets go of a block that several may hold. */
static void tell_drop(const telling *t, const me_script_event *x)
{
    me_engine *e = t->e;
    const me_module_id module = e->module;
    e->module = x->is_outer ? t->told.outer : x->event.module;
    if (x->drop == ME_SCRIPT_ATTRIBUTE) {
        me_attribute_set(e, x->attribute, NULL);
    } else if (x->drop == ME_SCRIPT_KEPT) {
        me_storage_release(e, t->kept->storages[x->slot - ME_SCRIPT_INPUTS]);
    }
    e->module = module;
}

/** What stands alone between two stretches. */
static void tell_alone(const telling *t, me_script_event *x,
                       const me_script_part *part)
{
    me_engine *e = t->e;
    if (x->turn != ME_SCRIPT_EVENT) {
        turn(e, t->told.script, x, t->told.outer);
        return;
    }
    if (x->drop != ME_SCRIPT_NO_DROP) {
        tell_drop(t, x);
        return;
    }
    if (x->event.kind == ME_EVENT_FREE_REQUESTED) {
        part->release(part->self, x->slot);
        return;
    }
    me_event *event = me_telling_fill(&t->told, x);
    if (event->kind == ME_EVENT_POINT) {
        event->name = part->name(part->self, event->name);
    }
    for (uint32_t i = 0; i < e->n_first_observers; i++) {
        if ((t->kinds[i] & ME_EVENT_BIT(event->kind)) != 0) {
            e->observers[i].on_event(e->observers[i].self, event);
        }
    }
    me_strand_keep_alone(e, event);
}

/** Tell all events, from and back to the program's module. */
static void tell_events(telling *t, const me_script_part *part)
{
    me_engine *e = t->e;
    const me_script *s = t->told.script;
    uint32_t ops_begin = 0;
    for (uint32_t i = 0; i < s->stretches.count; i++) {
        const me_script_stretch *to = &s->stretches.items[i];
        tell_stretch(t, i, ops_begin);
        if (to->event != ME_SCRIPT_NO_EVENT) {
            tell_alone(t, &s->events[to->event], part);
        }
        ops_begin = to->ops_end;
    }
    if (!s->stretches.goes_back) {
        follow_modules(e, s);
    }
    e->module = s->stretches.goes_back ? t->told.outer : s->module_after;
    e->n_events += s->n_events;
}

bool me_script_tell(me_engine *e, me_script *script, uint32_t id,
                    const me_script_inputs *inputs, const me_script_part *part)
{
    if (me_script_place(e) != script->place ||
        (script->stays_outer && !script->follows_outer &&
         script->module != e->module) ||
        inputs->kept->count + ME_SCRIPT_INPUTS != script->n_inputs) {
        return false;
    }
    if (!me_script_divide(script)) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an action");
        return false;
    }
    const uint64_t pending = script->allocates ? pending_bytes(e) : 0;
    const me_repeated action = {
        .id = id,
        .marks = script->marks,
        .n_marks = script->n_marks,
        .pending_bytes = pending,
        .entered_bytes = script->enters_first ? pending : 0,
        .has_actions = script->has_actions,
        .is_usual = part->is_usual && script->is_balanced &&
                    script->module == e->module &&
                    me_script_frees_as_recorded(script, inputs->kept),
    };
    telling t = {.e = e,
                 .told = {.script = script,
                          .ids = script->ids,
                          .outer = e->module,
                          .iteration = e->iteration,
                          .microbatch = e->microbatch},
                 .kept = inputs->kept};
    me_strand_keep_repeated(e, &t.told, &action);
    begin_telling(e, &action, t.kinds);
    me_script_bind(script, inputs);
    set_categories(script, inputs);
    tell_events(&t, part);
    end_telling(e);
    me_strand_keep_repeated_end(e);
    add_work(e, script);
    return me_engine_is_ok(e);
}

void me_script_fini(me_script *script)
{
    me_free(script->events);
    me_free(script->ids);
    me_free(script->kept);
    me_free(script->marks);
    me_free(script->attributes);
    me_free(script->entered);
    me_script_stretches_fini(&script->stretches);
    *script = (me_script){.n_events = 0};
}

void me_blocks_fini(me_blocks *blocks)
{
    me_free(blocks->ids);
    me_free(blocks->storages);
    *blocks = (me_blocks){.ids = NULL};
}
