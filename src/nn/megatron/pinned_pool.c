/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/pinned_pool.h"

#include "base/alloc.h"
#include "base/size.h"

/** Of a block: what is asked for, or the power of two that holds it. */
static uint64_t size_of(uint64_t key, uint64_t bytes)
{
    uint64_t block = 1;
    while (key == 0 && block < bytes) {
        block = me_size_mul(block, 2);
    }
    return key == 0 ? block : bytes;
}

static me_pinned_size *find(const me_pinned_pool *pool, uint64_t key,
                            uint64_t bytes)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->sizes[i].key == key &&
            pool->sizes[i].bytes == size_of(key, bytes)) {
            return &pool->sizes[i];
        }
    }
    return NULL;
}

static me_pinned_size *add(me_engine *e, me_pinned_pool *pool, uint64_t key,
                           uint64_t bytes)
{
    if (pool->count == pool->capacity) {
        me_pinned_size *larger =
            me_engine_grow(e, pool->sizes, pool->count, &pool->capacity,
                           sizeof *larger, "pinned.sizes");
        if (larger == NULL) {
            return NULL;
        }
        pool->sizes = larger;
    }
    pool->sizes[pool->count] =
        (me_pinned_size){.key = key, .bytes = size_of(key, bytes)};
    return &pool->sizes[pool->count++];
}

void me_pinned_take(me_engine *e, me_pinned_pool *pool, uint64_t key,
                    uint64_t bytes)
{
    me_pinned_size *size = find(pool, key, bytes);
    if (size == NULL) {
        size = add(e, pool, key, bytes);
    }
    if (size != NULL && size->n_used++ == size->n_made) {
        size->n_made++;
        me_host_hold(e, ME_HOST_ACTIVATIONS, bytes, true);
    }
}

void me_pinned_give(me_pinned_pool *pool, uint64_t key, uint64_t bytes)
{
    me_pinned_size *size = find(pool, key, bytes);
    if (size != NULL && size->n_used > 0) {
        size->n_used--;
    }
}

void me_pinned_reset(me_pinned_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->sizes[i].n_used = 0;
    }
}

void me_pinned_fini(me_pinned_pool *pool)
{
    me_free(pool->sizes);
    *pool = (me_pinned_pool){.count = 0};
}
