/* SPDX-License-Identifier: BSD-3-Clause */
/* The states that the search can go back to. */
#include "alloc/replay_search_internal.h"
#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

/* All checkpoints together, and what a live block takes of one, in bytes. */
#define MAX_CHECKPOINT_BYTES (UINT64_C(1) << 28)
#define LIVE_BYTES           UINT64_C(256)

enum {
    LEAST_CALLS = 64, /* between checkpoints */
    LEAST_CHECKPOINTS = 4,
    JUMP_STEPS = 1000 /* at least for going back, as if for calls */
};

/** An id is at an address from now on; 0: nobody knows where. */
static void set_place(me_search *s, uint32_t id, uint64_t address)
{
    uint64_t *place = &s->places[id];
    if (*place != 0) {
        me_id_map_remove(
            &s->owned,
            me_id_map_find(&s->owned, (const char *)place, sizeof *place));
    }
    *place = address;
    bool is_new = false;
    me_id_value *value = NULL;
    if (address != 0 &&
        me_id_map_add(&s->owned, (const char *)place, sizeof *place, &is_new,
                      &value) != ME_OK) {
        *place = 0;
        s->is_lost = true;
    }
}

void me_search_move_id(me_search *s, uint32_t id, uint64_t address)
{
    move *grown = me_grow(s->moves, s->n_moves, &s->move_capacity,
                          sizeof *grown, "alloc.moves");
    if (grown == NULL) {
        s->is_lost = true;
        return;
    }
    s->moves = grown;
    grown[s->n_moves++] = (move){id, s->places[id]};
    set_place(s, id, address);
}

static void drop_checkpoint(checkpoint *c)
{
    me_pool_destroy(c->pool);
    me_free(c->lives);
    me_free(c->segments);
    *c = (checkpoint){0};
}

/** Every second one goes; the first one stays. */
static void thin_out(me_search *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_checkpoints; i++) {
        if (i % 2 == 0) {
            s->checkpoints[n++] = s->checkpoints[i];
        } else {
            drop_checkpoint(&s->checkpoints[i]);
        }
    }
    s->n_checkpoints = n;
}

/** Calls that a checkpoint pays for: it goes through all ids and copies what is
 * live. */
static uint32_t calls_between(const me_search *s)
{
    const uint32_t work = s->calls->n_ids / 16 + s->n_lives;
    return work < LEAST_CALLS ? LEAST_CALLS : work;
}

bool me_search_is_checkpoint_due(const me_search *s)
{
    return s->n_checkpoints == 0 ||
           s->call - s->checkpoints[s->n_checkpoints - 1].call >=
               calls_between(s);
}

static uint32_t max_checkpoints(const me_search *s)
{
    const uint64_t fit =
        MAX_CHECKPOINT_BYTES / ((uint64_t)s->n_lives * LIVE_BYTES + 1);
    return fit > MOST_CHECKPOINTS    ? MOST_CHECKPOINTS
           : fit < LEAST_CHECKPOINTS ? LEAST_CHECKPOINTS
                                     : (uint32_t)fit;
}

static void copy_lives(const me_search *s, live *lives)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < s->calls->n_ids; id++) {
        if (s->lives[id].is_live) {
            lives[n] = s->lives[id];
            lives[n++].id = id;
        }
    }
    ME_ASSERT(n == s->n_lives);
}

static void restore_lives(me_search *s, const checkpoint *c)
{
    memset(s->lives, 0, s->calls->n_ids * sizeof *s->lives);
    for (uint32_t i = 0; i < c->n_lives; i++) {
        s->lives[c->lives[i].id] = c->lives[i];
    }
    s->n_lives = c->n_lives;
}

me_status me_search_keep_checkpoint(me_search *s)
{
    while (s->n_checkpoints >= max_checkpoints(s)) {
        thin_out(s);
    }
    checkpoint c = {
        .call = s->call,
        .n_made = s->n_made,
        .n_rules = me_order_count(s->order),
        .n_moves = s->n_moves,
        .n_chosen = s->n_chosen,
        .n_returned = s->n_returned,
        .n_segments = s->n_segments,
        .n_numbers = s->n_numbers,
        .n_lives = s->n_lives,
        .n_pending = s->n_pending,
        .quiet_call = s->quiet_call,
        .quiet_chosen = s->quiet_chosen,
        .lives = me_alloc(s->n_lives, sizeof *c.lives, "alloc.lives"),
        .segments =
            me_alloc(s->n_segments, sizeof *c.segments, "alloc.segments"),
    };
    const me_status status = me_pool_clone(s->pool, &c.pool);
    if (status != ME_OK || c.lives == NULL || c.segments == NULL) {
        drop_checkpoint(&c);
        return ME_ERR_NOMEM;
    }
    copy_lives(s, c.lives);
    memcpy(c.segments, s->segments, s->n_segments * sizeof *c.segments);
    s->checkpoints[s->n_checkpoints++] = c;
    return ME_OK;
}

/** What going back costs: a pool, all ids, and the order of segments anew. */
static uint64_t jump_steps(const me_search *s)
{
    const uint64_t rules = me_order_count(s->order);
    return JUMP_STEPS + s->calls->n_ids / 16 + rules * s->n_numbers / 1024;
}

/** The state of the last checkpoint at or before a call. */
me_status me_search_go_back(me_search *s, uint32_t call)
{
    while (s->checkpoints[s->n_checkpoints - 1].call > call) {
        drop_checkpoint(&s->checkpoints[--s->n_checkpoints]);
    }
    const checkpoint *c = &s->checkpoints[s->n_checkpoints - 1];
    me_pool *pool = NULL;
    if (me_pool_clone(c->pool, &pool) != ME_OK) {
        return ME_ERR_NOMEM;
    }
    me_pool_destroy(s->pool);
    s->pool = pool;
    restore_lives(s, c);
    memcpy(s->segments, c->segments, c->n_segments * sizeof *s->segments);
    while (s->n_moves > c->n_moves) {
        const move *m = &s->moves[--s->n_moves];
        set_place(s, m->id, m->before);
    }
    me_order_forget(s->order, c->n_rules);
    s->n_segments = c->n_segments;
    s->n_numbers = c->n_numbers;
    s->n_made = c->n_made;
    s->n_chosen = c->n_chosen;
    s->n_returned = c->n_returned;
    s->n_pending = c->n_pending;
    s->quiet_call = c->quiet_call;
    s->quiet_chosen = c->quiet_chosen;
    s->call = c->call;
    s->result->n_steps += jump_steps(s);
    return ME_OK;
}

void me_search_drop_checkpoints(me_search *s)
{
    while (s->n_checkpoints > 0) {
        drop_checkpoint(&s->checkpoints[--s->n_checkpoints]);
    }
}
