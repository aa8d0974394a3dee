/* SPDX-License-Identifier: BSD-3-Clause */
/* All blocks as a memory snapshot lists them. */
#include "alloc/pool_internal.h"
#include "base/alloc.h"

#include <stdlib.h>

static bool is_mapped(const block *b)
{
    return b->state == BLOCK_FREE || b->state == BLOCK_ALLOCATED ||
           b->state == BLOCK_PENDING;
}

static me_pool_listed show(const me_pool *pool, const block *b)
{
    static const char *const states[] = {
        [BLOCK_FREE] = "inactive",
        [BLOCK_ALLOCATED] = "active_allocated",
        [BLOCK_PENDING] = "active_pending_free",
    };
    return (me_pool_listed){
        .address = b->address,
        .bytes = b->size,
        .requested_bytes = b->state == BLOCK_FREE ? 0 : b->requested,
        .stream = cuda_stream(b->stream),
        .mempool = mempool_of(b->stream),
        .state = states[b->state],
        .is_large = b->slot == ME_POOL_LARGE,
        .is_expandable = b->is_expandable,
        // of an expandable segment each mapped range is one
        .begins_segment = b->prev == NIL || !is_mapped(at(pool, b->prev)),
    };
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = ((const me_pool_listed *)a)->address;
    const uint64_t y = ((const me_pool_listed *)b)->address;
    return (x > y) - (x < y);
}

me_status me_pool_list(const me_pool *pool, me_pool_listed **blocks_out,
                       uint32_t *n_out)
{
    me_pool_listed *blocks =
        me_alloc(pool->n_blocks, sizeof *blocks, "alloc.list");
    uint32_t n = 0;
    if (blocks == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 1; i < pool->n_blocks; i++) {
        const block *b = at(pool, i);
        if (is_mapped(b)) {
            blocks[n++] = show(pool, b);
        }
    }
    qsort(blocks, n, sizeof *blocks, compare);
    *blocks_out = blocks;
    *n_out = n;
    return ME_OK;
}
