/* SPDX-License-Identifier: BSD-3-Clause */
/* What was written down is told again. */
#include "tensor/script.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/engine_private.h"

#include <string.h>

/** Everything but tensors and the module that an action could depend on. */
uint64_t me_script_place(const me_engine *e)
{
    return (uint64_t)e->phase << 12 | (uint64_t)e->category << 8 |
           (uint64_t)e->is_drawn << 16 | (uint64_t)e->stream << 4 |
           (uint64_t)e->thread << 1 | (uint64_t)e->grad_enabled;
}

bool me_script_can_tell(const me_engine *e)
{
    for (uint32_t i = 0; i < e->n_observers; i++) {
        if (e->observers[i].on_again == NULL) {
            return false;
        }
    }
    return e->n_hooks == 0 && !e->has_dispatch_mode;
}

void me_script_find(me_script *s, const me_script_found *found)
{
    for (uint32_t i = 0; i < ME_SCRIPT_TENSORS; i++) {
        s->ids[i] = found->blocks[i];
    }
    if (found->kept->count > 0) {
        memcpy(s->ids + ME_SCRIPT_TENSORS, found->kept->ids,
               found->kept->count * sizeof *s->ids);
    }
}

static bool is_same_event(const me_script_event *a, const me_script_event *b)
{
    const me_event *x = &a->event;
    const me_event *y = &b->event;
    return a->slot == b->slot && a->passes == b->passes &&
           a->is_late == b->is_late && a->is_outer == b->is_outer &&
           a->turn == b->turn && x->kind == y->kind &&
           x->category == y->category && x->old_category == y->old_category &&
           x->phase == y->phase && x->stream == y->stream &&
           x->collective == y->collective && x->group == y->group &&
           x->dtype == y->dtype && x->is_lone == y->is_lone &&
           x->is_scratch == y->is_scratch && x->is_late == y->is_late &&
           x->is_drawn == y->is_drawn && x->peer == y->peer &&
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
    return i == a->n_events && j == b->n_events && a->n_found == b->n_found &&
           a->n_slots == b->n_slots && a->n_kept == b->n_kept &&
           a->place == b->place && a->allocates == b->allocates &&
           a->enters_first == b->enters_first &&
           a->stays_outer == b->stays_outer &&
           (has_back(a) || a->module_after == b->module_after) &&
           memcmp(a->kept, b->kept, a->n_kept * sizeof *a->kept) == 0 &&
           memcmp(a->is_freed, b->is_freed, sizeof a->is_freed) == 0 &&
           memcmp(a->work, b->work, sizeof a->work) == 0;
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

/** Who is told of which kinds this time; bits by observer. @return of all */
static uint32_t begin_telling(const me_engine *e, const me_again *again,
                              uint32_t kinds[ME_MAX_OBSERVERS])
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        kinds[i] = (o->kinds | ME_AGAIN_PASSING) & o->on_again(o->self, again);
        all |= kinds[i];
    }
    return all;
}

static void end_telling(const me_engine *e)
{
    for (uint32_t i = 0; i < e->n_observers; i++) {
        if (e->observers[i].on_again_end != NULL) {
            e->observers[i].on_again_end(e->observers[i].self);
        }
    }
}

/** An object for a block that is freed late, of which there was none. */
static me_storage *late_storage(me_engine *e, const me_event *event)
{
    const me_storage like = {.bytes = event->bytes,
                             .category = event->category,
                             .stream = event->stream,
                             .module = event->module,
                             .is_late = true,
                             .is_scratch = event->is_scratch};
    return me_storage_adopt(e, &like, event->block);
}

/** After observers know of it: what the free means for ids and objects. */
static void follow_free(me_engine *e, const me_script_event *x)
{
    if (x->event.kind == ME_EVENT_FREE_COMPLETED) {
        me_block_forget(e, x->event.block);
    } else if (x->event.kind == ME_EVENT_FREE_REQUESTED && x->is_late) {
        me_storage *storage = late_storage(e, &x->event);
        if (storage != NULL) {
            me_storage_hold_back(e, storage);
        }
    }
}

static void deliver(const me_engine *e, const me_script_event *x,
                    const uint32_t *kinds)
{
    const uint32_t bit = ME_EVENT_BIT(x->event.kind);
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        const bool hears = (kinds[i] & bit) != 0 &&
                           (!x->passes || (kinds[i] & ME_AGAIN_PASSING) != 0);
        if (hears) {
            o->on_event(o->self, &x->event);
        }
    }
}

static void tell_event(me_engine *e, me_script *s, me_script_event *x,
                       const uint32_t *kinds, const me_script_part *part)
{
    x->event.iteration = e->iteration;
    x->event.microbatch = e->microbatch;
    if (x->event.kind == ME_EVENT_ALLOC) {
        if (e->pending.count > 0) {
            me_complete_pending(e);
        }
        s->ids[x->slot] = me_block_new(e);
    } else if (x->event.kind == ME_EVENT_POINT) {
        x->event.name = part->name(part->self, x->event.name);
    }
    if (x->slot != ME_SCRIPT_NO_SLOT) {
        x->event.block = s->ids[x->slot];
    }
    deliver(e, x, kinds);
    follow_free(e, x);
}

/** Into the script's modules, or back. */
static void turn(me_engine *e, const me_script_event *x, me_module_id outer)
{
    if (x->turn == ME_SCRIPT_BACK) {
        e->module = x->event.module;
    }
    me_module_switch(e, x->turn == ME_SCRIPT_BACK ? outer : x->event.module);
}

/** What its events make of the caller's blocks, which are freed as that. */
static void set_categories(const me_script *s, const me_script_found *found)
{
    for (uint32_t i = 0; i < ME_SCRIPT_TENSORS; i++) {
        if (s->is_recategorized[i] && found->tensors[i] != NULL) {
            found->tensors[i]->category = s->category[i];
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

bool me_script_keep(me_engine *e, const me_script *script, me_blocks *kept)
{
    if (script->n_kept > kept->capacity) {
        uint32_t *ids =
            me_realloc(kept->ids, script->n_kept, sizeof *ids, "script.blocks");
        if (ids == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an action");
            return false;
        }
        kept->ids = ids;
        kept->capacity = script->n_kept;
    }
    for (uint32_t i = 0; i < script->n_kept; i++) {
        kept->ids[i] = script->ids[script->kept[i]];
    }
    kept->count = script->n_kept;
    return true;
}

/** The tree knows which modules are entered. */
static void follow_module(me_engine *e, const me_event *event)
{
    if (event->kind == ME_EVENT_MODULE_ENTER) {
        e->tree.modules[event->module].entered++;
    } else if (event->kind == ME_EVENT_MODULE_LEAVE) {
        e->tree.modules[event->module].entered--;
    }
}

/** Tell all events, from and back to the module @p outer. */
static void tell_events(me_engine *e, me_script *s, me_module_id outer,
                        const uint32_t *kinds, uint32_t all,
                        const me_script_part *part)
{
    for (uint32_t i = 0; i < s->n_events; i++) {
        me_script_event *x = &s->events[i];
        if (x->turn != ME_SCRIPT_EVENT) {
            turn(e, x, outer);
            continue;
        }
        follow_module(e, &x->event);
        if (x->slot < ME_SCRIPT_TENSORS &&
            x->event.kind == ME_EVENT_FREE_REQUESTED) {
            part->release(part->self, x->slot);
        } else if (x->slot != ME_SCRIPT_NO_SLOT ||
                   (all & ME_EVENT_BIT(x->event.kind)) != 0) {
            x->event.module = x->is_outer ? outer : x->event.module;
            tell_event(e, s, x, kinds, part);
        }
    }
    e->module = has_back(s) ? outer : s->module_after;
    e->n_events += s->n_events;
}

bool me_script_tell(me_engine *e, me_script *script, uint32_t id,
                    const me_script_found *found, const me_script_part *part)
{
    if (me_script_place(e) != script->place ||
        (script->stays_outer && !script->follows_outer &&
         script->module != e->module) ||
        found->kept->count + ME_SCRIPT_TENSORS != script->n_found) {
        return false;
    }
    const uint64_t pending = script->allocates ? pending_bytes(e) : 0;
    const me_again again = {
        .id = id,
        .marks = script->marks,
        .n_marks = script->n_marks,
        .pending_bytes = pending,
        .entered_bytes = script->enters_first ? pending : 0,
        .is_usual = part->is_usual && script->is_balanced &&
                    script->module == e->module,
    };
    uint32_t kinds[ME_MAX_OBSERVERS] = {0};
    const uint32_t all = begin_telling(e, &again, kinds);
    me_script_find(script, found);
    set_categories(script, found);
    tell_events(e, script, e->module, kinds, all, part);
    end_telling(e);
    add_work(e, script);
    return me_engine_is_ok(e);
}

void me_script_fini(me_script *script)
{
    me_free(script->events);
    me_free(script->ids);
    me_free(script->kept);
    me_free(script->marks);
    *script = (me_script){.n_events = 0};
}

void me_blocks_fini(me_blocks *blocks)
{
    me_free(blocks->ids);
    *blocks = (me_blocks){.ids = NULL};
}
