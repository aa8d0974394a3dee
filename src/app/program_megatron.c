/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/program.h"
#include "base/alloc.h"

static me_status init(const me_plan *plan, int32_t rank, me_program *p)
{
    const me_config *c = plan->config;
    p->chunks =
        me_alloc((size_t)plan->n_chunks, sizeof *p->chunks, "program.chunks");
    if (p->chunks == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int32_t i = 0; i < plan->n_chunks; i++) {
        const me_stage s = me_plan_stage(plan, rank, i);
        p->chunks[i] = (me_gpt_spec){
            .first_layer = s.first_layer,
            .num_layers = s.n_layers,
            .pre_process = s.has_embedding,
            .post_process = s.has_head,
            .is_pipelined = c->parallel.pipeline > 1,
            .chunk = i,
        };
    }
    p->megatron = (me_megatron_spec){
        .config = c,
        .chunks = p->chunks,
        .n_chunks = plan->n_chunks,
        .pipeline = me_plan_pipeline(plan, rank),
        .order = plan->order,
        .is_moe_layer = plan->is_moe_layer,
        .routing = &plan->routing,
        .runs_all_rounds = !me_routing_is_uniform(&plan->routing),
    };
    return ME_OK;
}

static void run(me_engine *e, me_program *p)
{
    p->megatron.iterations = p->iterations;
    p->megatron.runs_all_rounds =
        p->megatron.runs_all_rounds || p->runs_all_rounds;
    p->megatron.must_run_all = &p->must_run_all;
    p->megatron.unlike = p->unlike;
    (void)me_megatron_run(e, &p->megatron, &p->comm);
}

static const me_schedule *schedule(const me_plan *plan)
{
    const char *name = plan->config->parallel.pipeline == 1 ? "none"
                       : plan->n_chunks > 1                 ? "interleaved"
                                                            : "1f1b";
    return me_schedule_find(name);
}

const me_program_kind me_megatron_program = {
    .init = init,
    .run = run,
    .schedule = schedule,
};
