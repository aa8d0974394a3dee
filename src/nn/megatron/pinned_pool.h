/**
 * @file
 * Pinned memory of the host that is used again and again: blocks of a size, as
 * PyTorch's CachingHostAllocator and Megatron-LM's OffloadTensorPool keep them.
 * What is new is told with me_host_hold(), so that the engine knows the most
 * that was held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_PINNED_POOL_H
#define MEMEST_NN_MEGATRON_PINNED_POOL_H

#include "tensor/engine.h"

/** Blocks of one size and key. */
typedef struct me_pinned_size {
    uint64_t key;
    uint64_t bytes;
    uint32_t n_made;
    uint32_t n_used;
} me_pinned_size;

/** All zero: empty. */
typedef struct me_pinned_pool {
    me_pinned_size *sizes;
    uint32_t count;
    uint32_t capacity;
} me_pinned_pool;

/** Take a block of @p bytes, a new one if none is free. With a @p key over 0 it
 *  is one of that key and size, else one of the same power of two. */
void me_pinned_take(me_engine *e, me_pinned_pool *pool, uint64_t key,
                    uint64_t bytes);

/** It is free again. */
void me_pinned_give(me_pinned_pool *pool, uint64_t key, uint64_t bytes);

/** All are free again. */
void me_pinned_reset(me_pinned_pool *pool);

/** Give back the list. */
void me_pinned_fini(me_pinned_pool *pool);

#endif /* MEMEST_NN_MEGATRON_PINNED_POOL_H */
