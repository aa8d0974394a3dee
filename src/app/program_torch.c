/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/program.h"

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

const me_program_kind me_torch_program = {
    .init = init,
    .run = run,
    .schedule = schedule,
};
