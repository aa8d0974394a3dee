/**
 * @file
 * The small blocks of a rank that makes those of each batch in another order than
 * the one whose events are told (run/twin.h), beside the pool of that one. What
 * comes of it is equal for both as long as both take memory from the driver at the
 * same requests: large blocks have no part in where small ones are placed, nor the
 * other way round, but by the addresses that the driver gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_POOL_TWIN_H
#define MEMEST_ALLOC_POOL_TWIN_H

#include "alloc/pool.h"

/** A block that was asked for. */
typedef struct me_pool_twin_request {
    uint32_t id;         /**< of the engine */
    me_pool_block block; /**< what the other pool has given */
    uint64_t bytes;
    uint64_t stream;
    uint8_t mempool;
    uint8_t batch_place; /**< as me_event's */
} me_pool_twin_request;

typedef struct me_pool_twin me_pool_twin;

/**
 * An empty one. Local.
 *
 * @param other     the pool of the rank whose events are told, empty as well, with
 *                  memory without end; borrowed
 * @param twin_out  to be destroyed by the caller
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_pool_twin_create(const me_pool *other,
                              const me_pool_options *options,
                              me_pool_twin **twin_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_pool_twin_destroy(me_pool_twin *twin);

/** The other pool has served a request. Local. */
void me_pool_twin_take(me_pool_twin *twin, const me_pool_twin_request *served);

/** A block is freed: at once, asked for, completed. Local.
 *  @{ */
void me_pool_twin_free(me_pool_twin *twin, uint32_t id);
void me_pool_twin_free_requested(me_pool_twin *twin, uint32_t id);
void me_pool_twin_free_completed(me_pool_twin *twin, uint32_t id);
/** @} */

/** What is cached went back: nothing is known of what comes after. Local. */
void me_pool_twin_give_up(me_pool_twin *twin);

/** May it have taken memory otherwise than the other pool? Local. */
bool me_pool_twin_differs(me_pool_twin *twin);

#endif /* MEMEST_ALLOC_POOL_TWIN_H */
