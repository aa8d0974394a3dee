/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of requests and segments; memory from the driver, and the ways it goes
 * back. */
#include "alloc/pool_internal.h"

#include <stddef.h>

uint64_t me_pool_round(const me_alloc_conf *conf, uint64_t bytes)
{
    if (bytes < MIN_BLOCK) {
        return MIN_BLOCK;
    }
    const uint32_t log2 = 63U - (uint32_t)__builtin_clzll(bytes);
    uint32_t index = log2 < 20U ? 0U : log2 - 20U;
    if (index >= ME_ALLOC_CONF_INTERVALS) {
        index = ME_ALLOC_CONF_INTERVALS - 1;
    }
    const uint64_t divisions = conf->roundup_power2_divisions[index];
    if (divisions <= 1 || bytes / MIN_BLOCK < divisions ||
        bytes == MIN_BLOCK * divisions) {
        return me_round_up(bytes, MIN_BLOCK);
    }
    const uint64_t floor = UINT64_C(1) << log2;
    const uint64_t step = floor >> (63U - (uint32_t)__builtin_clzll(divisions));
    return step == 0 ? floor << 1U : me_round_up(bytes, step);
}

uint64_t me_pool_segment_bytes(const me_alloc_conf *conf, uint64_t rounded)
{
    if (rounded <= SMALL_REQUEST) {
        return SMALL_SEGMENT;
    }
    if (rounded < MIN_LARGE_SEGMENT) {
        return conf->large_segment_bytes;
    }
    return me_round_up(rounded, ROUND_LARGE);
}

me_status me_pool_segment_take(me_pool *pool, request *r, bool is_retry)
{
    if (is_retry) {
        pool->num_alloc_retries++;
    }
    if (reserved_bytes(pool) + r->segment > pool->limit_bytes) {
        return ME_ERR_CAPACITY;
    }
    if (pool->options.conf.expandable_segments) {
        return me_pool_expand(pool, r);
    }
    if (!has_room(pool, r->segment)) {
        return ME_ERR_CAPACITY;
    }
    me_status status = me_pool_store_reserve(pool, 1);
    uint64_t address = 0;
    uint32_t extent = NIL;
    if (status == ME_OK) {
        status = me_pool_driver_place(pool, r->segment, &address, &extent);
    }
    if (status == ME_OK) {
        status = me_pool_store_reserve(pool, 1);
    }
    if (status != ME_OK) {
        return status;
    }
    r->found = me_pool_record(pool);
    block *b = at(pool, r->found);
    b->stream = r->stream;
    b->size = r->segment;
    b->address = address;
    b->placed_at = extent;
    b->slot = (uint8_t)r->slot;
    stat_up(pool, ME_POOL_SEGMENT, b->slot, 1);
    stat_up(pool, ME_POOL_RESERVED_BYTES, b->slot, b->size);
    pool->private_bytes += is_private(b->stream) ? b->size : 0;
    pool->newest_address = address;
    if (b->size >= pool->options.conf.max_split_bytes) {
        count_up(&pool->oversize_segments, 1);
    }
    pool->num_device_alloc++;
    me_pool_emit(pool, ME_POOL_TRACE_SEGMENT_ALLOC, address, b->size,
                 b->stream);
    return ME_OK;
}

/** Give a free block that is a whole segment back to the driver. */
static void release_block(me_pool *pool, uint32_t index)
{
    const block *b = at(pool, index);
    ME_ASSERT(!is_split(b) && !b->is_expandable);
    pool->num_device_free++;
    me_pool_emit(pool, ME_POOL_TRACE_SEGMENT_FREE, b->address, b->size,
                 b->stream);
    stat_down(pool, ME_POOL_SEGMENT, b->slot, 1);
    stat_down(pool, ME_POOL_RESERVED_BYTES, b->slot, b->size);
    pool->private_bytes -= is_private(b->stream) ? b->size : 0;
    if (b->size >= pool->options.conf.max_split_bytes) {
        pool->oversize_segments.current--;
    }
    me_pool_free_erase(pool, index);
    me_pool_driver_free(pool, b->placed_at);
    me_pool_record_drop(pool, index);
}

static bool is_releasable(const block *b)
{
    return !b->is_expandable && !is_split(b);
}

/** Of the default pool: a captured graph has the addresses of its own in it. */
static bool is_cache(const block *b)
{
    return is_releasable(b) && !is_private(b->stream);
}

/** No single block will do: from the largest one that is smaller downwards. */
static bool release_several(me_pool *pool, const request *r, uint32_t from,
                            uint64_t wanted)
{
    const uint64_t least = pool->options.conf.max_split_bytes;
    uint64_t released = 0;
    uint32_t i = from == NIL ? me_pool_free_last(pool, r->slot, r->stream)
                             : me_pool_free_prev(pool, from);
    while (i != NIL && released < wanted && at(pool, i)->size >= least) {
        const uint32_t previous = me_pool_free_prev(pool, i);
        if (is_releasable(at(pool, i))) {
            released += at(pool, i)->size;
            release_block(pool, i);
        }
        i = previous;
    }
    return released >= wanted;
}

bool me_pool_release_available(me_pool *pool, const request *r)
{
    const uint64_t least = pool->options.conf.max_split_bytes;
    if (least == ME_ALLOC_CONF_UNLIMITED) {
        return false;
    }
    const uint64_t wanted = me_max_u64(r->size, least);
    const uint32_t i = me_pool_free_find(pool, r->slot, r->stream, wanted);
    if (i == NIL || !is_releasable(at(pool, i))) {
        return release_several(pool, r, i, wanted);
    }
    release_block(pool, i);
    return true;
}

/** Unmapping puts what is left of a block back into the set; meeting that
 * again does nothing, since it holds no whole page. */
static me_status release_slot(me_pool *pool, me_pool_slot slot)
{
    uint32_t next = NIL;
    for (uint32_t i = me_pool_free_first(pool, slot); i != NIL; i = next) {
        next = me_pool_free_next(pool, i);
        if (is_cache(at(pool, i))) {
            release_block(pool, i);
        }
    }
    me_status status = ME_OK;
    for (uint32_t i = me_pool_free_first(pool, slot);
         i != NIL && status == ME_OK; i = next) {
        next = me_pool_free_next(pool, i);
        if (at(pool, i)->is_expandable && !is_private(at(pool, i)->stream)) {
            status = me_pool_unmap(pool, i);
        }
    }
    return status;
}

me_status me_pool_release_cached(me_pool *pool)
{
    me_pool_synchronize(pool);
    const me_status status = release_slot(pool, ME_POOL_LARGE);
    return status == ME_OK ? release_slot(pool, ME_POOL_SMALL) : status;
}

static uint32_t age(const me_pool *pool, const block *b)
{
    return pool->n_searches[b->slot] - b->age_base;
}

/** How many large blocks could be given back, and how old they are together. */
static uint64_t total_age(const me_pool *pool, uint64_t *n_out)
{
    uint64_t sum = 0;
    *n_out = 0;
    for (uint32_t i = me_pool_free_first(pool, ME_POOL_LARGE); i != NIL;
         i = me_pool_free_next(pool, i)) {
        if (is_cache(at(pool, i))) {
            sum += age(pool, at(pool, i));
            *n_out += 1;
        }
    }
    return sum;
}

/** Give back every large block of at least the average age, even past what
 * was wanted, so that this is not needed again soon; the bytes. */
static uint64_t release_old(me_pool *pool, double threshold, uint64_t *sum,
                            uint64_t *n)
{
    uint64_t released = 0;
    uint32_t next = NIL;
    for (uint32_t i = me_pool_free_first(pool, ME_POOL_LARGE); i != NIL;
         i = next) {
        next = me_pool_free_next(pool, i);
        const uint32_t years = age(pool, at(pool, i));
        if (is_cache(at(pool, i)) && (double)years >= threshold) {
            released += at(pool, i)->size;
            *sum -= years;
            *n -= 1;
            release_block(pool, i);
        }
    }
    return released;
}

void me_pool_collect_garbage(me_pool *pool)
{
    const double share = pool->options.conf.garbage_collection_threshold;
    const uint64_t threshold = (uint64_t)(share * (double)pool->limit_bytes);
    if (reserved_bytes(pool) <= threshold) {
        return;
    }
    const uint64_t wanted = reserved_bytes(pool) - threshold;
    uint64_t n = 0;
    uint64_t sum = total_age(pool, &n);
    uint64_t released = 0;
    bool is_freeing = true;
    while (released < wanted && is_freeing && n > 0) {
        const uint64_t bytes =
            release_old(pool, (double)sum / (double)n, &sum, &n);
        is_freeing = bytes > 0;
        released += bytes;
    }
}
