/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/limit_end.h"

/** What the job prints when it dies. */
static void append_message(const me_pool_observer *pool,
                           const me_pool_limit *end, me_str *text)
{
    if (end->is_outside) {
        me_str_printf(text,
                      "NCCL error: unhandled cuda error: Cuda failure 2 'out "
                      "of memory' (%s)",
                      end->op == NULL ? "outside of NCCL" : end->op);
    } else {
        me_pool_observer_oom_text(pool, text);
    }
}

me_status me_limit_end_set(const me_pool_observer *pool,
                           const me_engine *engine, me_diag *diag,
                           me_rank_result *result)
{
    me_status status = me_pool_observer_status(pool, diag);
    if (status != ME_OK) {
        return status;
    }
    const me_pool_limit end = me_pool_observer_limit(pool);
    me_limit_result limit = {
        .is_known = true,
        .oom = end.is_oom,
        .num_alloc_retries = end.num_alloc_retries,
        .reserved_bytes = end.reserved_bytes,
    };
    me_str message = {0};
    if (end.is_oom) {
        append_message(pool, &end, &message);
        limit.iteration = end.iteration;
        limit.phase = me_phase_name(end.phase);
        limit.module = me_engine_modules(engine)->modules[end.module].path;
        limit.op = end.op;
        limit.tried_bytes = end.oom.tried_bytes;
        limit.message = me_str_text(&message);
    }
    status = me_str_status(&message);
    if (status == ME_OK) {
        status = me_rank_result_set_limit(result, &limit);
    }
    me_str_fini(&message);
    return status;
}

uint32_t me_limit_end_shard(const me_pool_observer *pool)
{
    const me_pool_limit end = me_pool_observer_limit(pool);
    return end.is_oom && end.is_shard ? end.module : 0;
}

me_status me_limit_end_set_as(const me_limit_result *limit, uint32_t module,
                              const me_shard_modules *shards, me_diag *diag,
                              me_rank_result *result)
{
    me_limit_result own = *limit;
    uint32_t i = 0;
    while (i < shards->count && shards->from[i] != module) {
        i++;
    }
    if (module != 0 && i < shards->count) {
        own.module = result->modules[shards->to[i] - 1].name;
    }
    return me_rank_result_set_limit(result, &own) == ME_OK
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no host memory for a result");
}
