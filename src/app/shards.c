/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/shards.h"

#include "app/program.h"
#include "base/alloc.h"
#include "plan/torch_shards.h"
#include "train/megatron/megatron.h"

/** Of each member of the rank's data-parallel group, its place in its expert
 *  data-parallel group; NULL without memory. */
static int32_t *expert_indices(const me_plan *plan, int32_t rank)
{
    const me_group group =
        me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, rank);
    int32_t *indices =
        me_alloc((size_t)group.size, sizeof *indices, "plan.experts");
    for (int32_t i = 0; indices != NULL && i < group.size; i++) {
        const int32_t member = me_group_member(&group, i);
        const me_group experts =
            me_grid_group(&plan->grid, ME_GROUP_EXPERT_DATA, member);
        indices[i] = me_group_index(&experts, member);
    }
    return indices;
}

me_status me_shards_find(void *self, const me_plan *plan, int32_t rank,
                         me_diag *diag, int32_t *class_out)
{
    (void)self;
    if (me_torch_shards_parameters(plan->config)) {
        return me_torch_shard_classes(plan, rank, class_out) == ME_OK
                   ? ME_OK
                   : me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    const me_card no_card = {.multiprocessors = 1};
    me_engine *engine = NULL;
    me_program program = {.chunks = NULL};
    int32_t *experts = expert_indices(plan, rank);
    me_status status =
        experts == NULL ? ME_ERR_NOMEM : me_engine_create(&no_card, &engine);
    if (status == ME_OK) {
        status = me_program_init(plan, rank, &program);
    }
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory for the plan");
    } else {
        (void)me_megatron_shard_classes(engine, &program.megatron,
                                        &program.comm, experts, class_out);
        status = me_engine_status(engine, diag);
    }
    me_program_fini(&program);
    me_engine_destroy(engine);
    me_free(experts);
    return status;
}
