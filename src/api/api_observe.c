/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_watch.h"
#include "base/alloc.h"

static me_status check_rank(const me_run *run, int32_t rank, me_diag *diag)
{
    const int32_t world = me_run_config(run)->parallel.world_size;
    return rank >= 0 && rank < world
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "rank %d: the job has ranks 0 to %d", rank, world - 1);
}

memest_status memest_observe(const memest_job *job, int32_t rank,
                             const memest_observer *const *observers,
                             size_t n_observers, memest_error *error)
{
    const me_run_options options = {.strict = false};
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_api_run run = {.run = NULL};
    me_status status = me_api_plan(job, &options, diag, &run);
    if (status == ME_OK) {
        status = check_rank(run.run, rank, diag);
    }
    if (status == ME_OK) {
        status =
            me_api_watch(run.run, rank, NULL, observers, n_observers, diag);
    }
    me_api_run_fini(&run);
    return me_api_status(me_alloc_check(lost, status, diag));
}
