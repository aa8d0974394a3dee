/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/torch_shards.h"
#include "run/program.h"

static const me_schedule *schedule(const me_plan *plan)
{
    const me_config *c = plan->config;
    return me_schedule_find(c->parallel.pipeline == 1 ? "none"
                                                      : c->pipeline.name);
}

static me_status init(const me_plan *plan, int32_t rank, me_program *p)
{
    const bool is_own =
        plan->config->parallel.pipeline > 1 && plan->order == NULL;
    p->torch = (me_torch_spec){
        .config = plan->config,
        .pipeline = me_plan_pipeline(plan, rank),
        .schedule = is_own ? schedule(plan) : NULL,
        .order = plan->order,
    };
    return ME_OK;
}

static void run(me_engine *e, me_program *p)
{
    p->torch.iterations = p->iterations;
    (void)me_torch_run(e, &p->torch, &p->comm);
}

static me_status shard_classes(const me_plan *plan, int32_t rank, me_diag *diag,
                               int32_t *class_out, me_shard_kin *kin)
{
    (void)kin; // none are found
    return me_torch_shard_classes(plan, rank, class_out) == ME_OK
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
}

static bool has_no_strands(const me_config *config)
{
    (void)config;
    return false;
}

const me_program_kind me_torch_program = {
    .init = init,
    .run = run,
    .shard_classes = shard_classes,
    .can_have_strands = has_no_strands,
    .schedule = schedule,
    .host = ME_HOST_OF_TORCH,
};
