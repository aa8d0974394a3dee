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
