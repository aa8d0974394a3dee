/* SPDX-License-Identifier: BSD-3-Clause */
#include "slow_pool.h"

#include "support/test.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t rounded(const slow_pool *pool, uint64_t bytes)
{
    if (bytes < 512) {
        return 512;
    }
    if (pool->divisions <= 1 || bytes <= 512 * pool->divisions) {
        return (bytes + 511) / 512 * 512;
    }
    uint64_t power = 512;
    while (power * 2 <= bytes) {
        power *= 2;
    }
    uint64_t size = power;
    while (size < bytes) {
        size += power / pool->divisions;
    }
    return size;
}

static uint64_t segment_size(uint64_t size)
{
    if (size <= MIB) {
        return 2 * MIB;
    }
    return size < 10 * MIB ? 20 * MIB
                           : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static bool is_same_segment(const slow_pool *pool, size_t a, size_t b)
{
    return a < pool->n_blocks && b < pool->n_blocks &&
           pool->blocks[a].segment == pool->blocks[b].segment;
}

static bool is_whole(const slow_pool *pool, size_t i)
{
    return !is_same_segment(pool, i, i + 1) &&
           (i == 0 || !is_same_segment(pool, i, i - 1));
}

static void insert(slow_pool *pool, size_t i, slow_block b)
{
    assert_true(pool->n_blocks < SLOW_BLOCKS);
    memmove(&pool->blocks[i + 1], &pool->blocks[i],
            (pool->n_blocks - i) * sizeof b);
    pool->blocks[i] = b;
    pool->n_blocks++;
}

static void erase(slow_pool *pool, size_t i)
{
    pool->n_blocks--;
    memmove(&pool->blocks[i], &pool->blocks[i + 1],
            (pool->n_blocks - i) * sizeof pool->blocks[0]);
}

static bool is_better(const slow_block *a, const slow_block *b)
{
    return a->size != b->size ? a->size < b->size : a->address < b->address;
}

/* Index of the best block, or n_blocks. */
static size_t search(const slow_pool *pool, uint64_t size, uint64_t stream)
{
    size_t best = pool->n_blocks;
    for (size_t i = 0; i < pool->n_blocks; i++) {
        const slow_block *b = &pool->blocks[i];
        if (b->state == SLOW_FREE && b->stream == stream &&
            b->is_small == (size <= MIB) && b->size >= size &&
            (best == pool->n_blocks || is_better(b, &pool->blocks[best]))) {
            best = i;
        }
    }
    if (best == pool->n_blocks) {
        return best;
    }
    const uint64_t found = pool->blocks[best].size;
    const bool is_oversize = size >= pool->max_split;
    if ((!is_oversize && found >= pool->max_split) ||
        (is_oversize && found >= size + pool->rounding)) {
        return pool->n_blocks;
    }
    return best;
}

static size_t add_segment(slow_pool *pool, uint64_t size, uint64_t stream)
{
    const uint64_t bytes = segment_size(size);
    if (me_slow_add_up(pool).reserved + bytes > pool->limit) {
        return SLOW_BLOCKS;
    }
    const uint64_t address = pool->place(pool->place_self);
    insert(pool, pool->n_blocks,
           (slow_block){.segment = address,
                        .address = address,
                        .size = bytes,
                        .stream = stream,
                        .is_small = size <= MIB});
    return pool->n_blocks - 1;
}

/* What max_split_size_mb gives back before everything goes. */
static bool release_some(slow_pool *pool, uint64_t size, uint64_t stream)
{
    if (pool->max_split == UINT64_MAX) {
        return false;
    }
    const uint64_t wanted = size < pool->max_split ? pool->max_split : size;
    uint64_t released = 0;
    while (released < wanted) {
        size_t best = pool->n_blocks;
        size_t largest = pool->n_blocks;
        for (size_t i = 0; i < pool->n_blocks; i++) {
            const slow_block *b = &pool->blocks[i];
            if (b->state != SLOW_FREE || b->stream != stream ||
                b->is_small != (size <= MIB) || b->size < pool->max_split) {
                continue;
            }
            if (b->size >= wanted &&
                (best == pool->n_blocks || is_better(b, &pool->blocks[best]))) {
                best = i;
            }
            if (largest == pool->n_blocks ||
                is_better(&pool->blocks[largest], b)) {
                largest = i;
            }
        }
        const size_t chosen = best != pool->n_blocks ? best : largest;
        if (chosen == pool->n_blocks) {
            return false;
        }
        released += pool->blocks[chosen].size;
        erase(pool, chosen);
    }
    return true;
}

static void hand_out(slow_pool *pool, size_t i, uint64_t size, uint64_t bytes)
{
    slow_block *b = &pool->blocks[i];
    const uint64_t rest = b->size - size;
    const bool is_split =
        b->is_small ? rest >= 512 : size < pool->max_split && rest > MIB;
    b->state = SLOW_USED;
    b->requested = bytes;
    if (is_split) {
        slow_block upper = *b;
        b->size = size;
        upper.address += size;
        upper.size = rest;
        upper.state = SLOW_FREE;
        insert(pool, i + 1, upper);
    }
}

bool me_slow_alloc(slow_pool *pool, uint64_t bytes, uint64_t stream,
                   uint64_t *address_out)
{
    const uint64_t size = rounded(pool, bytes);
    size_t i = search(pool, size, stream);
    if (i == pool->n_blocks) {
        i = add_segment(pool, size, stream);
    }
    if (i == SLOW_BLOCKS && release_some(pool, size, stream)) {
        i = add_segment(pool, size, stream);
    }
    if (i == SLOW_BLOCKS) {
        me_slow_flush(pool);
        pool->n_retries++;
        i = add_segment(pool, size, stream);
    }
    if (i == SLOW_BLOCKS) {
        return false;
    }
    hand_out(pool, i, size, bytes);
    *address_out = pool->blocks[i].address;
    return true;
}

static size_t find(const slow_pool *pool, uint64_t address)
{
    size_t i = 0;
    while (i < pool->n_blocks && pool->blocks[i].address != address) {
        i++;
    }
    return i;
}

static void merge_with_next(slow_pool *pool, size_t i)
{
    if (is_same_segment(pool, i, i + 1) && pool->blocks[i].state == SLOW_FREE &&
        pool->blocks[i + 1].state == SLOW_FREE) {
        pool->blocks[i].size += pool->blocks[i + 1].size;
        erase(pool, i + 1);
    }
}

static void complete(slow_pool *pool, size_t i)
{
    pool->blocks[i].state = SLOW_FREE;
    merge_with_next(pool, i);
    if (i > 0) {
        merge_with_next(pool, i - 1);
    }
}

void me_slow_free(slow_pool *pool, uint64_t address, bool is_waiting)
{
    const size_t i = find(pool, address);
    assert_true(i < pool->n_blocks && pool->blocks[i].state == SLOW_USED);
    if (is_waiting) {
        pool->blocks[i].state = SLOW_WAITING;
    } else {
        complete(pool, i);
    }
}

void me_slow_complete(slow_pool *pool, uint64_t address)
{
    const size_t i = find(pool, address);
    if (i < pool->n_blocks && pool->blocks[i].state == SLOW_WAITING) {
        complete(pool, i);
    }
}

void me_slow_flush(slow_pool *pool)
{
    for (size_t i = 0; i < pool->n_blocks; i++) {
        if (pool->blocks[i].state == SLOW_WAITING) {
            complete(pool, i);
            i = (size_t)-1; /* merging has moved blocks: from the start */
        }
    }
    for (size_t i = pool->n_blocks; i-- > 0;) {
        if (pool->blocks[i].state == SLOW_FREE && is_whole(pool, i)) {
            erase(pool, i);
        }
    }
}

slow_sums me_slow_add_up(const slow_pool *pool)
{
    slow_sums sums = {0};
    for (size_t i = 0; i < pool->n_blocks; i++) {
        const slow_block *b = &pool->blocks[i];
        sums.reserved += b->size;
        sums.n_segments += b->address == b->segment ? 1 : 0;
        if (b->state == SLOW_FREE) {
            sums.inactive_split += is_whole(pool, i) ? 0 : b->size;
            continue;
        }
        sums.requested += b->requested;
        sums.active += b->size;
        sums.allocated += b->state == SLOW_USED ? b->size : 0;
    }
    return sums;
}
