/**
 * @file
 * A slow and simple caching allocator for tests: one flat list of blocks,
 * searched from end to end, counters added up anew each time. No expandable
 * segments and no garbage collection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_ALLOC_SLOW_POOL_H
#define MEMEST_TESTS_UNIT_ALLOC_SLOW_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLOW_BLOCKS = 4096
};

typedef enum slow_state {
    SLOW_FREE,
    SLOW_USED,
    SLOW_WAITING
} slow_state;

typedef struct slow_block {
    uint64_t segment; /**< where its segment begins */
    uint64_t address;
    uint64_t size;
    uint64_t requested;
    uint64_t stream;
    slow_state state;
    bool is_small;
} slow_block;

typedef struct slow_pool {
    uint64_t max_split; /**< UINT64_MAX: none */
    uint64_t rounding;  /**< slack of blocks that are not split */
    uint64_t divisions; /**< of roundup_power2_divisions; 0: off */
    uint64_t limit;     /**< UINT64_MAX: none */
    uint64_t (*place)(void *self);
    void *place_self;
    uint64_t n_retries;
    size_t n_blocks;
    slow_block blocks[SLOW_BLOCKS]; /**< segment after segment, by address */
} slow_pool;

typedef struct slow_sums {
    uint64_t requested;
    uint64_t allocated;
    uint64_t active;
    uint64_t reserved;
    uint64_t inactive_split;
    uint64_t n_segments;
} slow_sums;

/** Serve a request; false: out of memory. */
bool me_slow_alloc(slow_pool *pool, uint64_t bytes, uint64_t stream,
                   uint64_t *address_out);

/** Free the block at an address; it waits for another stream or does not. */
void me_slow_free(slow_pool *pool, uint64_t address, bool is_waiting);

/** The wait is over, unless that was so before. */
void me_slow_complete(slow_pool *pool, uint64_t address);

/** Complete all waits and give back whole segments. */
void me_slow_flush(slow_pool *pool);

slow_sums me_slow_add_up(const slow_pool *pool);

#endif /* MEMEST_TESTS_UNIT_ALLOC_SLOW_POOL_H */
