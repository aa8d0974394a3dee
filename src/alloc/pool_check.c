/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant walker: what must hold between any two calls. */
#include "alloc/pool_internal.h"

#include <inttypes.h>
#include <string.h>

/** What the walk adds up, to compare with the counters. */
typedef struct tally {
    uint64_t sums[ME_POOL_STAT_COUNT][ME_POOL_SLOTS];
    uint64_t n_free[ME_POOL_SLOTS];
    uint64_t n_unmapped[ME_POOL_SLOTS];
    uint64_t n_holes;
    uint64_t n_pending;
    uint64_t n_unused;
} tally;

static me_status wrong(me_diag *diag, const char *what, uint32_t index)
{
    return me_fail(diag, ME_ERR_INTERNAL, "pool: block %" PRIu32 ": %s", index,
                   what);
}

static bool is_mapped(const block *b)
{
    return b->state >= BLOCK_FREE && b->state <= BLOCK_PENDING;
}

static const char *check_next(const me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    const block *n = at(pool, b->next);
    if (b->next == NIL) {
        return NULL;
    }
    if (n->prev != index) {
        return "its next does not point back";
    }
    if (b->address + b->size != n->address) {
        return "does not end where its next begins";
    }
    if (n->stream != b->stream || n->slot != b->slot ||
        n->is_expandable != b->is_expandable) {
        return "its next is of another segment";
    }
    if (n->state == b->state &&
        (b->state == BLOCK_FREE || b->state == BLOCK_UNMAPPED ||
         b->state == BLOCK_HOLE)) {
        return "is not merged with its next";
    }
    return NULL;
}

static const char *check_block(const me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    if (b->size == 0 || b->size % MIN_BLOCK != 0) {
        return "its size is no multiple of 512";
    }
    if (b->prev != NIL && at(pool, b->prev)->next != index) {
        return "its previous one does not point to it";
    }
    if (is_mapped(b) && b->state != BLOCK_FREE && b->requested > b->size) {
        return "is smaller than what was asked for";
    }
    if (b->state == BLOCK_UNMAPPED && !b->is_expandable) {
        return "is unmapped without being expandable";
    }
    return check_next(pool, index);
}

static void add(tally *t, me_pool_stat_kind kind, unsigned slot, uint64_t n)
{
    t->sums[kind][ME_POOL_ALL] += n;
    t->sums[kind][slot] += n;
}

static void tally_mapped(tally *t, const block *b)
{
    add(t, ME_POOL_RESERVED_BYTES, b->slot, b->size);
    if (b->prev == NIL && !b->is_expandable) {
        add(t, ME_POOL_SEGMENT, b->slot, 1);
    }
    if (b->state == BLOCK_FREE) {
        t->n_free[b->slot]++;
        if (is_split(b) && !b->is_expandable) {
            add(t, ME_POOL_INACTIVE_SPLIT, b->slot, 1);
            add(t, ME_POOL_INACTIVE_SPLIT_BYTES, b->slot, b->size);
        }
        return;
    }
    if (b->state == BLOCK_ALLOCATED) {
        add(t, ME_POOL_ALLOCATION, b->slot, 1);
        add(t, ME_POOL_ALLOCATED_BYTES, b->slot, b->size);
    } else {
        t->n_pending++;
    }
    add(t, ME_POOL_ACTIVE, b->slot, 1);
    add(t, ME_POOL_ACTIVE_BYTES, b->slot, b->size);
    add(t, ME_POOL_REQUESTED_BYTES, b->slot, b->requested);
}

static me_status tally_records(const me_pool *pool, me_diag *diag, tally *t)
{
    for (uint32_t i = 1; i < pool->n_blocks; i++) {
        const block *b = at(pool, i);
        if (b->state == BLOCK_UNUSED) {
            t->n_unused++;
            continue;
        }
        const char *what = check_block(pool, i);
        if (what != NULL) {
            return wrong(diag, what, i);
        }
        if (is_mapped(b)) {
            tally_mapped(t, b);
        }
        t->n_unmapped[b->slot] += b->state == BLOCK_UNMAPPED ? 1 : 0;
        t->n_holes += b->state == BLOCK_HOLE ? 1 : 0;
    }
    return ME_OK;
}

static bool is_ordered(const block *a, const block *b, bool is_by_address)
{
    if (a->stream != b->stream) {
        return a->stream < b->stream;
    }
    if (!is_by_address && a->size != b->size) {
        return a->size < b->size;
    }
    return a->address < b->address;
}

/** What a set has to hold. */
typedef struct expected {
    block_state state;
    unsigned slot;
    uint64_t n;
    bool is_by_address;
} expected;

static me_status check_next_of_set(const me_pool *pool, const expected *e,
                                   uint32_t previous, uint32_t i, me_diag *diag)
{
    const block *b = at(pool, i);
    if (b->state != e->state || b->slot != e->slot) {
        return wrong(diag, "is in a set that it does not belong to", i);
    }
    if (previous != NIL &&
        !is_ordered(at(pool, previous), b, e->is_by_address)) {
        return wrong(diag, "is out of order in its set", i);
    }
    return ME_OK;
}

static me_status check_set(const me_pool *pool, const block_set *set,
                           const expected *e, me_diag *diag)
{
    me_status status = ME_OK;
    uint32_t previous = NIL;
    uint64_t n = 0;
    for (uint32_t i = me_pool_set_first(pool, set);
         i != NIL && n <= e->n && status == ME_OK;
         i = me_pool_set_next(pool, i)) {
        status = check_next_of_set(pool, e, previous, i, diag);
        previous = i;
        n++;
    }
    return status == ME_OK && n != e->n
               ? wrong(diag, "a set misses blocks", previous)
               : status;
}

static me_status check_free(const me_pool *pool, const expected *e,
                            me_diag *diag)
{
    me_status status = ME_OK;
    uint32_t previous = NIL;
    uint64_t n = 0;
    for (uint32_t i = me_pool_free_first(pool, e->slot);
         i != NIL && n <= e->n && status == ME_OK;
         i = me_pool_free_next(pool, i)) {
        status = check_next_of_set(pool, e, previous, i, diag);
        previous = i;
        n++;
    }
    return status == ME_OK && n != e->n
               ? wrong(diag, "the cache misses blocks", previous)
               : status;
}

static me_status check_sets(const me_pool *pool, me_diag *diag, const tally *t)
{
    const expected holes = {BLOCK_HOLE, ME_POOL_ALL, t->n_holes, false};
    me_status status = check_set(pool, &pool->driver.holes, &holes, diag);
    for (unsigned slot = ME_POOL_SMALL;
         slot <= ME_POOL_LARGE && status == ME_OK; slot++) {
        const expected cached = {BLOCK_FREE, slot, t->n_free[slot], false};
        const expected unmapped = {BLOCK_UNMAPPED, slot, t->n_unmapped[slot],
                                   true};
        status = check_free(pool, &cached, diag);
        if (status == ME_OK) {
            status = check_set(pool, &pool->unmapped[slot], &unmapped, diag);
        }
    }
    return status;
}

static me_status check_pending(const me_pool *pool, me_diag *diag, uint64_t n)
{
    for (uint32_t i = pool->pending_first; i != NIL; i = at(pool, i)->right) {
        if (at(pool, i)->state != BLOCK_PENDING || n-- == 0) {
            return wrong(diag, "should not wait for another stream", i);
        }
    }
    return n == 0 ? ME_OK : wrong(diag, "pending blocks are lost", NIL);
}

static me_status check_counters(const me_pool *pool, me_diag *diag,
                                const tally *t)
{
    for (int kind = 0; kind < ME_POOL_STAT_COUNT; kind++) {
        for (int slot = 0; slot < ME_POOL_SLOTS; slot++) {
            const counter *c = &pool->counters[kind][slot];
            if (c->current != t->sums[kind][slot] || c->peak < c->current) {
                return me_fail(diag, ME_ERR_INTERNAL,
                               "pool: %s of slot %d: counter %" PRIu64
                               " (peak %" PRIu64 "), blocks %" PRIu64,
                               me_pool_stat_name((me_pool_stat_kind)kind), slot,
                               c->current, c->peak, t->sums[kind][slot]);
            }
        }
    }
    return ME_OK;
}

me_status me_pool_check(const me_pool *pool, me_diag *diag)
{
    tally t;
    memset(&t, 0, sizeof t);
    me_status status = tally_records(pool, diag, &t);
    if (status == ME_OK && t.n_unused != pool->n_unused) {
        status = wrong(diag, "unused records are lost", NIL);
    }
    if (status == ME_OK) {
        status = check_sets(pool, diag, &t);
    }
    if (status == ME_OK) {
        status = check_pending(pool, diag, t.n_pending);
    }
    return status == ME_OK ? check_counters(pool, diag, &t) : status;
}
