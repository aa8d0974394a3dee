/**
 * @file
 * How a job ends with the memory that its allocator may have, in the terms of
 * its result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_LIMIT_END_H
#define MEMEST_RUN_LIMIT_END_H

#include "alloc/pool_observer.h"
#include "model/shard_kin.h"
#include "tensor/engine.h"
#include "track/result.h"

/**
 * Put into a result whether its rank ran or where it died and what it would
 * print. Local.
 *
 * @param pool    that watched the rank's program
 * @param engine  that ran it, for the names of modules
 * @return ME_OK; the pool's failure; ME_ERR_NOMEM
 */
me_status me_limit_end_set(const me_pool_observer *pool,
                           const me_engine *engine, me_diag *diag,
                           me_rank_result *result) ME_MUST_CHECK;

/** The module of the shard that the program died for; 0: none. Local. */
uint32_t me_limit_end_shard(const me_pool_observer *pool);

/**
 * The same for a rank for which another one stands: it dies as that one does,
 * though in a module of its own if that was one of a shard's. Local.
 *
 * @param limit   of the rank that was simulated
 * @param module  as me_limit_end_shard() says it of that one
 * @param result  has all but its limit
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_limit_end_set_as(const me_limit_result *limit, uint32_t module,
                              const me_shard_modules *shards, me_diag *diag,
                              me_rank_result *result) ME_MUST_CHECK;

#endif /* MEMEST_RUN_LIMIT_END_H */
