/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/cycle.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/engine_private.h"

#include <string.h>

enum {
    FIRST_EVENTS = 4096
};

/** A storage at a mark. */
typedef struct me_cycle_block {
    const char *op;
    uint64_t bytes;
    uint32_t module;
    uint32_t refs;
    uint32_t block;
    uint8_t category;
    uint8_t stream;
    bool is_late;
} me_cycle_block;

void me_record_event(me_engine *e, const me_event *event)
{
    me_recording *r = &e->recording;
    if (r->count == r->capacity) {
        const uint32_t capacity =
            r->capacity == 0 ? FIRST_EVENTS : r->capacity * 2;
        me_event *events =
            me_realloc(r->events, capacity, sizeof *events, "cycle.events");
        if (events == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a round");
            r->is_on = false;
            return;
        }
        r->events = events;
        r->capacity = capacity;
    }
    r->events[r->count++] = *event;
}

/** Everything but tensors that a round could depend on. */
static uint64_t place_of(const me_engine *e)
{
    return (uint64_t)e->module << 32 | (uint64_t)e->variables.count << 16 |
           (uint64_t)e->phase << 12 | (uint64_t)e->category << 8 |
           (uint64_t)e->stream << 4 | (uint64_t)e->thread << 1 |
           (uint64_t)e->grad_enabled;
}

static bool can_repeat(const me_engine *e)
{
    for (uint32_t i = 0; i < e->n_observers; i++) {
        if (e->observers[i].on_again == NULL) {
            return false;
        }
    }
    return true;
}

static me_cycle_block read_block(const me_storage *s)
{
    return (me_cycle_block){
        .op = s->op,
        .bytes = s->bytes,
        .module = s->module,
        .refs = s->refs,
        .block = s->block,
        .category = s->category,
        .stream = s->stream,
        .is_late = s->is_late,
    };
}

/** Append those that last (buffers made when first needed) or the others,
 *  newest first. */
static uint32_t read_newest(const me_engine *e, bool lasts,
                            me_cycle_block *blocks, uint32_t count)
{
    for (const me_storage *s = e->newest; s != NULL; s = s->older) {
        if ((s->category == ME_CATEGORY_BUFFER) == lasts) {
            blocks[count++] = read_block(s);
        }
    }
    return count;
}

/** What the allocator has, then what waits to be freed, in the order in which
 *  it will be; NULL without memory. */
static me_cycle_block *read_blocks(const me_engine *e, uint32_t *count_out)
{
    uint32_t n = e->pending.count;
    for (const me_storage *s = e->newest; s != NULL; s = s->older) {
        n++;
    }
    me_cycle_block *blocks = me_alloc(n + 1, sizeof *blocks, "cycle.blocks");
    uint32_t at = 0;
    if (blocks != NULL) {
        at = read_newest(e, false, blocks, at);
        at = read_newest(e, true, blocks, at);
    }
    for (uint32_t i = 0; blocks != NULL && i < e->pending.count; i++) {
        blocks[at++] = read_block(e->pending.storages[i]);
    }
    *count_out = n;
    return blocks;
}

/** Have both the same part in their rounds? Where in the list they are says
 *  the rest. */
static bool is_alike(const me_cycle_block *a, const me_cycle_block *b)
{
    const bool lasts = a->category == ME_CATEGORY_BUFFER;
    return (!lasts || a->block == b->block) && a->op == b->op &&
           a->bytes == b->bytes && a->module == b->module &&
           a->refs == b->refs && a->category == b->category &&
           a->stream == b->stream && a->is_late == b->is_late;
}

static bool is_repeated(const me_engine *e, const me_cycle *c,
                        const me_cycle_block *blocks, uint32_t count)
{
    if (!c->has_mark || count != c->n_blocks || place_of(e) != c->place ||
        e->pending.count != c->n_pending) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_alike(&c->blocks[i], &blocks[i])) {
            return false;
        }
    }
    return true;
}

/** What each block of the last mark has become. */
static bool pair_blocks(me_cycle *c, const me_cycle_block *blocks)
{
    const uint32_t n = c->n_blocks - c->n_pending; /* they stand there twice */
    c->renames = me_alloc(n + 1, sizeof *c->renames, "cycle.renames");
    for (uint32_t i = 0; c->renames != NULL && i < n; i++) {
        c->renames[i] = (me_rename){blocks[i].block, c->blocks[i].block};
    }
    c->n_renames = n;
    return c->renames != NULL;
}

bool me_cycle_mark(me_engine *e, me_cycle *cycle, uint64_t position)
{
    uint32_t count = 0;
    if (!me_engine_is_ok(e) || !can_repeat(e)) {
        return false;
    }
    me_cycle_block *blocks = read_blocks(e, &count);
    if (blocks == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a round");
        return false;
    }
    cycle->position = cycle->last_position;
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_ROUND});
    if (is_repeated(e, cycle, blocks, count)) {
        e->recording.is_on = false;
        const bool has_pairs = pair_blocks(cycle, blocks);
        me_free(blocks);
        return has_pairs;
    }
    me_free(cycle->blocks);
    cycle->blocks = blocks;
    cycle->n_blocks = count;
    cycle->n_pending = e->pending.count;
    cycle->place = place_of(e);
    cycle->last_position = position;
    memcpy(cycle->work, e->work, sizeof cycle->work);
    cycle->has_mark = true;
    e->recording.is_on = true;
    e->recording.count = 0;
    return false;
}

/** Who is told of which kinds this time; bits by observer. @return of all */
static uint32_t begin_round(me_engine *e, const me_cycle *c,
                            uint32_t kinds[ME_MAX_OBSERVERS])
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        kinds[i] = o->kinds & o->on_again(o->self, c->renames, c->n_renames);
        all |= kinds[i];
    }
    return all;
}

/** The recorded round becomes the next one, and observers are told it. */
static void tell_round(me_engine *e, const me_cycle *c, int32_t times,
                       const me_cycle_names *names)
{
    uint32_t kinds[ME_MAX_OBSERVERS];
    const uint32_t all = begin_round(e, c, kinds);
    for (uint32_t i = 0; i < e->recording.count; i++) {
        me_event *event = &e->recording.events[i];
        const uint32_t bit = ME_EVENT_BIT(event->kind);
        event->microbatch += event->microbatch != ME_NO_MICROBATCH;
        if ((all & bit) == 0) {
            continue;
        }
        if (event->kind == ME_EVENT_POINT) {
            event->name = names->find(names->self, event->name, times);
        }
        for (uint32_t j = 0; j < e->n_observers; j++) {
            if ((kinds[j] & bit) != 0) {
                e->observers[j].on_event(e->observers[j].self, event);
            }
        }
    }
    e->n_events += e->recording.count;
}

/** Count the work since the last mark @p times more. */
static void add_work(me_engine *e, const me_cycle *c, uint64_t times)
{
    for (int i = 0; i < ME_PHASE_COUNT; i++) {
        const me_work round = {e->work[i].flops - c->work[i].flops,
                               e->work[i].bytes - c->work[i].bytes};
        e->work[i].flops =
            me_size_add(e->work[i].flops, me_size_mul(times, round.flops));
        e->work[i].bytes =
            me_size_add(e->work[i].bytes, me_size_mul(times, round.bytes));
    }
}

void me_cycle_again(me_engine *e, me_cycle *cycle, int32_t times,
                    const me_cycle_names *names)
{
    for (int32_t i = 1; i <= times && me_engine_is_ok(e); i++) {
        tell_round(e, cycle, i, names);
    }
    for (uint32_t i = 0; i < e->n_observers; i++) {
        const me_observer *o = &e->observers[i];
        if (o->on_again_end != NULL) {
            o->on_again_end(o->self);
        }
    }
    add_work(e, cycle, (uint64_t)times);
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_AGAIN, .times = times});
}

void me_cycle_fini(me_engine *e, me_cycle *cycle)
{
    e->recording.is_on = false;
    me_free(cycle->blocks);
    me_free(cycle->renames);
    *cycle = (me_cycle){0};
}
