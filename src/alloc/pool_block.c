/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks on their way back: merging, caching, frees now and late. Below this are
 * records and sets of them; the driver, segments and requests are above. */
#include "alloc/pool_count.h"

void me_pool_emit(const me_pool *pool, me_pool_action action, uint64_t address,
                  uint64_t bytes, uint64_t stream)
{
    if (pool->options.on_trace == NULL) {
        return;
    }
    const me_pool_trace entry = {action, address, bytes, cuda_stream(stream)};
    pool->options.on_trace(pool->options.trace_self, &entry);
}

void me_pool_cache(me_pool *pool, uint32_t index)
{
    block *b = at(pool, index);
    b->state = BLOCK_FREE;
    b->age_base = pool->n_searches[b->slot];
    me_pool_free_insert(pool, index);
}

uint64_t me_pool_merge(me_pool *pool, uint32_t into, uint32_t from)
{
    block *dst = at(pool, into);
    block *src = at(pool, from);
    const block_state wanted =
        dst->state == BLOCK_UNMAPPED ? BLOCK_UNMAPPED : BLOCK_FREE;
    if (from == NIL || src->state != wanted) {
        return 0;
    }
    const uint64_t size = src->size;
    if (wanted == BLOCK_FREE) {
        me_pool_free_erase(pool, from);
    } else {
        me_pool_set_erase(pool, &pool->unmapped[src->slot], from);
    }
    if (dst->prev == from) {
        dst->address = src->address;
        dst->placed_at = src->placed_at;
        dst->prev = src->prev;
        at(pool, dst->prev)->next = dst->prev == NIL ? NIL : into;
    } else {
        dst->next = src->next;
        at(pool, dst->next)->prev = dst->next == NIL ? NIL : into;
    }
    dst->size += size;
    me_pool_record_drop(pool, from);
    return size;
}

/** @p index, or NIL if it is not cached. */
static uint32_t if_free(const me_pool *pool, uint32_t index)
{
    return index != NIL && at(pool, index)->state == BLOCK_FREE ? index : NIL;
}

/** A block that is no longer used becomes part of the cached one below it, or
 * above it. */
static void join_prev(me_pool *pool, uint32_t index, uint32_t prev)
{
    const block *b = at(pool, index);
    block *kept = at(pool, prev);
    kept->next = b->next;
    at(pool, b->next)->prev = b->next == NIL ? NIL : prev;
    me_pool_free_resize(pool, prev, kept->address, kept->size + b->size);
}

static void join_next(me_pool *pool, uint32_t index, uint32_t next)
{
    const block *b = at(pool, index);
    block *kept = at(pool, next);
    kept->prev = b->prev;
    kept->placed_at = b->placed_at;
    at(pool, b->prev)->next = b->prev == NIL ? NIL : next;
    me_pool_free_resize(pool, next, b->address, kept->size + b->size);
}

/** Cache a block, as one with those beside it that are. @return that one */
static uint32_t cache_freed(me_pool *pool, uint32_t index, uint32_t prev,
                            uint32_t next)
{
    const uint32_t into = prev != NIL ? prev : next;
    if (into == NIL) {
        me_pool_cache(pool, index);
        return index;
    }
    at(pool, into)->age_base = pool->n_searches[at(pool, into)->slot];
    if (prev == NIL) {
        join_next(pool, index, next);
    } else {
        (void)me_pool_merge(pool, index, next);
        join_prev(pool, index, prev);
    }
    me_pool_record_drop(pool, index);
    return into;
}

static void complete_free(me_pool *pool, uint32_t index)
{
    const block *freed = at(pool, index);
    const uint64_t size = freed->size;
    const uint64_t requested = freed->requested;
    me_pool_emit(pool, ME_POOL_TRACE_FREE_COMPLETED, freed->address, requested,
                 freed->stream);
    const uint32_t prev = if_free(pool, freed->prev);
    const uint32_t next = if_free(pool, freed->next);
    const inactive_split merged = {
        .count = (uint64_t)(prev != NIL) + (uint64_t)(next != NIL),
        .bytes = at(pool, prev)->size + at(pool, next)->size,
    };
    const block *b = at(pool, cache_freed(pool, index, prev, next));
    count_free_completed(pool, b, size, requested, merged);
}

static void request_free(me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    ME_ASSERT(b->state == BLOCK_ALLOCATED);
    me_pool_emit(pool, ME_POOL_TRACE_FREE_REQUESTED, b->address, b->requested,
                 b->stream);
    count_free_requested(pool, b);
}

void me_pool_free(me_pool *pool, me_pool_block block_index)
{
    if (block_index != ME_POOL_NO_BLOCK) {
        request_free(pool, block_index);
        complete_free(pool, block_index);
    }
}

uint32_t me_pool_free_requested(me_pool *pool, me_pool_block block_index)
{
    if (block_index == ME_POOL_NO_BLOCK) {
        return pool->epoch;
    }
    request_free(pool, block_index);
    block *b = at(pool, block_index);
    b->state = BLOCK_PENDING;
    b->left = pool->pending_last;
    b->right = NIL;
    if (pool->pending_last == NIL) {
        pool->pending_first = block_index;
    } else {
        at(pool, pool->pending_last)->right = block_index;
    }
    pool->pending_last = block_index;
    return pool->epoch;
}

static void unchain_pending(me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    if (b->left == NIL) {
        pool->pending_first = b->right;
    } else {
        at(pool, b->left)->right = b->right;
    }
    if (b->right == NIL) {
        pool->pending_last = b->left;
    } else {
        at(pool, b->right)->left = b->left;
    }
}

void me_pool_free_completed(me_pool *pool, me_pool_block block_index,
                            uint32_t epoch)
{
    if (block_index == ME_POOL_NO_BLOCK || epoch != pool->epoch) {
        return;
    }
    ME_ASSERT(at(pool, block_index)->state == BLOCK_PENDING);
    unchain_pending(pool, block_index);
    complete_free(pool, block_index);
}

void me_pool_synchronize(me_pool *pool)
{
    pool->num_sync_all_streams++;
    while (pool->pending_first != NIL) {
        const uint32_t index = pool->pending_first;
        unchain_pending(pool, index);
        complete_free(pool, index);
    }
    pool->epoch++;
}
