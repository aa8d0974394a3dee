/**
 * @file
 * What requests and frees do to the pool's counters. Where somebody wants no
 * more than bytes (me_pool_options), most of it is left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_POOL_COUNT_H
#define MEMEST_ALLOC_POOL_COUNT_H

#include "alloc/pool_internal.h"

/** Blocks that a counter of inactive split ones has, and had before. */
typedef struct inactive_split {
    uint64_t count;
    uint64_t bytes;
} inactive_split;

/** A block is handed out. */
static inline void count_alloc(me_pool *pool, const block *b, uint64_t bytes)
{
    if (pool->options.counts_bytes_alone) {
        count_up(&pool->counters[ME_POOL_ALLOCATED_BYTES][ME_POOL_ALL],
                 b->size);
        return;
    }
    stat_up(pool, ME_POOL_ALLOCATION, b->slot, 1);
    stat_up(pool, ME_POOL_ALLOCATED_BYTES, b->slot, b->size);
    stat_up(pool, ME_POOL_ACTIVE, b->slot, 1);
    stat_up(pool, ME_POOL_ACTIVE_BYTES, b->slot, b->size);
    stat_up(pool, ME_POOL_REQUESTED_BYTES, b->slot, bytes);
    if (b->size >= pool->options.conf.max_split_bytes) {
        count_up(&pool->oversize_allocations, 1);
    }
}

/** @p b was cut off @p rest. */
static inline void count_split(me_pool *pool, const block *b, const block *rest,
                               bool was_split)
{
    if (pool->options.counts_bytes_alone || b->is_expandable) {
        return;
    }
    if (was_split) {
        stat_down(pool, ME_POOL_INACTIVE_SPLIT_BYTES, b->slot, b->size);
    } else {
        stat_up(pool, ME_POOL_INACTIVE_SPLIT_BYTES, b->slot, rest->size);
        stat_up(pool, ME_POOL_INACTIVE_SPLIT, b->slot, 1);
    }
}

/** A cached block is taken whole. */
static inline void count_taken(me_pool *pool, const block *b)
{
    if (!pool->options.counts_bytes_alone && is_split(b) && !b->is_expandable) {
        stat_down(pool, ME_POOL_INACTIVE_SPLIT_BYTES, b->slot, b->size);
        stat_down(pool, ME_POOL_INACTIVE_SPLIT, b->slot, 1);
    }
}

/** The program lets go of a block. */
static inline void count_free_requested(me_pool *pool, const block *b)
{
    if (pool->options.counts_bytes_alone) {
        pool->counters[ME_POOL_ALLOCATED_BYTES][ME_POOL_ALL].current -= b->size;
        return;
    }
    stat_down(pool, ME_POOL_ALLOCATION, b->slot, 1);
    stat_down(pool, ME_POOL_ALLOCATED_BYTES, b->slot, b->size);
    if (b->size >= pool->options.conf.max_split_bytes) {
        pool->oversize_allocations.current--;
    }
}

/** The net change decides which of a counter's sums moves. @param merged  what
 *  @p b had been before, beside what is cached with it now */
static inline void count_cached(me_pool *pool, const block *b,
                                inactive_split merged)
{
    const uint64_t n_after = is_split(b) ? 1 : 0;
    const uint64_t bytes_after = is_split(b) ? b->size : 0;
    if (n_after > merged.count) {
        stat_up(pool, ME_POOL_INACTIVE_SPLIT, b->slot, n_after - merged.count);
    } else {
        stat_down(pool, ME_POOL_INACTIVE_SPLIT, b->slot,
                  merged.count - n_after);
    }
    if (bytes_after > merged.bytes) {
        stat_up(pool, ME_POOL_INACTIVE_SPLIT_BYTES, b->slot,
                bytes_after - merged.bytes);
    } else {
        stat_down(pool, ME_POOL_INACTIVE_SPLIT_BYTES, b->slot,
                  merged.bytes - bytes_after);
    }
}

/** A block of @p size bytes is cached as @p b, with what was @p merged. */
static inline void count_free_completed(me_pool *pool, const block *b,
                                        uint64_t size, uint64_t requested,
                                        inactive_split merged)
{
    if (pool->options.counts_bytes_alone) {
        return;
    }
    if (!b->is_expandable) {
        count_cached(pool, b, merged);
    }
    stat_down(pool, ME_POOL_ACTIVE, b->slot, 1);
    stat_down(pool, ME_POOL_ACTIVE_BYTES, b->slot, size);
    stat_down(pool, ME_POOL_REQUESTED_BYTES, b->slot, requested);
}

#endif /* MEMEST_ALLOC_POOL_COUNT_H */
