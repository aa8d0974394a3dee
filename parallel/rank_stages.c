/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/rank_stages.h"

#include "base/alloc.h"

me_status me_rank_stages_init(const me_pipeline_order *order,
                              me_rank_stages *stages_out)
{
    const size_t n_ranks = (size_t)order->n_ranks;
    me_rank_stages stages = {
        .stages = me_alloc((size_t)order->n_stages, sizeof(int32_t),
                           "rank_stages.stages"),
        .first = me_alloc(n_ranks + 1, sizeof(int32_t), "rank_stages.first"),
    };
    if (stages.stages == NULL || stages.first == NULL) {
        me_rank_stages_fini(&stages);
        return ME_ERR_NOMEM;
    }
    for (int32_t s = 0; s < order->n_stages; s++) {
        stages.first[order->rank_of_stage[s] + 1]++;
    }
    for (size_t r = 0; r < n_ranks; r++) {
        stages.first[r + 1] += stages.first[r];
    }
    // Filled from the end of each rank's part, which then is its beginning.
    for (int32_t s = order->n_stages; s > 0; s--) {
        stages.stages[--stages.first[order->rank_of_stage[s - 1] + 1]] = s - 1;
    }
    for (size_t r = 0; r < n_ranks; r++) {
        stages.first[r] = stages.first[r + 1];
    }
    stages.first[n_ranks] = order->n_stages;
    *stages_out = stages;
    return ME_OK;
}

void me_rank_stages_fini(me_rank_stages *stages)
{
    me_free(stages->stages);
    me_free(stages->first);
    *stages = (me_rank_stages){.stages = NULL};
}
