/**
 * @file
 * The small blocks of a rank whose events are those of another one, the first of
 * its tensor group, but for the order in which it makes a micro-batch's tensors
 * (run/twin.h). The first rank's events are followed, with that order turned
 * into the other one, in a pool of small blocks alone.
 *
 * The two pools of an allocator share nothing but the driver. This one's driver
 * gives the large segments as well, as the first rank takes them. As long as it
 * places them where that one has them, all large blocks lie alike on both ranks.
 * If there are also as many small segments whenever somebody looks at what is
 * reserved, and room for them where it is limited, that is the same too. A small
 * block is as large as its request, rounded, wherever it lies, so as many bytes
 * are allocated. Where any of this does not hold for certain, the ranks may
 * differ.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_TWIN_POOL_H
#define MEMEST_ALLOC_TWIN_POOL_H

#include "alloc/pool.h"

#include <stdbool.h>
#include <stdint.h>

/** What a rank makes of each micro-batch that it reads: labels, a mask of the
 *  loss of half as many bytes, position ids and tokens. The first rank begins
 *  with the attention mask and ends with the tokens, the others begin with the
 *  tokens and end with the mask (get_batch_on_this_tp_rank() of Megatron-LM). */
typedef struct me_twin_batch {
    uint64_t token_bytes; /**< 0: it reads nothing */
    uint64_t mask_bytes;  /**< of the attention mask; 0: none is made */
} me_twin_batch;

typedef struct me_twin_pool me_twin_pool;

/** An allocation of the first rank. */
typedef struct me_twin_request {
    uint32_t id; /**< of the block, until it is free */
    uint64_t bytes;
    uint64_t stream;
    uint8_t mempool;
    bool is_input; /**< it may be a part of a micro-batch */
    bool is_oom;   /**< it has found no memory */
} me_twin_request;

/**
 * An empty pool. Local.
 *
 * @param first     the first rank's pool, empty, borrowed; it is told of each
 *                  event before this one
 * @param conf      of both
 * @param pool_out  to be destroyed by the caller
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_twin_pool_create(const me_pool *first, const me_alloc_conf *conf,
                              const me_twin_batch *batch,
                              me_twin_pool **pool_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_twin_pool_destroy(me_twin_pool *pool);

/** @name Events of the first rank, in order
 *  @{ */
void me_twin_pool_alloc(me_twin_pool *pool, const me_twin_request *request);
void me_twin_pool_free(me_twin_pool *pool, uint32_t id);
void me_twin_pool_free_requested(me_twin_pool *pool, uint32_t id);
void me_twin_pool_free_completed(me_twin_pool *pool, uint32_t id);
void me_twin_pool_empty_cache(me_twin_pool *pool);
void me_twin_pool_take(me_twin_pool *pool, me_pool_taker taker, uint64_t bytes);
/** Somebody may look at what is reserved. */
void me_twin_pool_compare(me_twin_pool *pool);
/** @} */

/** Times that it asked the driver for small segments. Local. */
uint64_t me_twin_pool_driver_calls(const me_twin_pool *pool);

/** May the other rank have reserved or allocated anything else where somebody
 *  looked, or have now? Local. */
bool me_twin_pool_differs(const me_twin_pool *pool);

#endif /* MEMEST_ALLOC_TWIN_POOL_H */
