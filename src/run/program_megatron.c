/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "run/program.h"
#include "train/megatron/strands.h"

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
        const int32_t pieces = 1 + c->model.mtp_num_layers;
        p->chunks[i] = (me_gpt_spec){
            .first_layer = s.first_layer,
            .num_layers = s.n_layers,
            .pre_process = s.has_embedding,
            .post_process = s.has_head,
            .has_mtp = s.has_mtp,
            .is_pipelined = c->parallel.pipeline > 1,
            .pieces_in = s.is_behind_mtp ? pieces : 1,
            .pieces_out = s.has_mtp || s.is_behind_mtp ? pieces : 1,
            .chunk = i,
        };
    }
    p->megatron = (me_megatron_spec){
        .config = c,
        .chunks = p->chunks,
        .n_chunks = plan->n_chunks,
        .pipeline = me_plan_pipeline(plan, rank),
        .order = plan->order,
        .exchanges_shapes = c->model.mtp_num_layers > 0 &&
                            me_layer_split_mtp_stage(&plan->split) <
                                plan->split.pipeline * plan->split.chunks - 1,
        .is_moe_layer = plan->is_moe_layer,
        .routing = &plan->routing,
        .runs_all_rounds = !me_plan_is_steady(plan, rank),
    };
    return ME_OK;
}

static void run(me_engine *e, me_program *p)
{
    p->megatron.iterations = p->iterations;
    p->megatron.runs_all_rounds =
        p->megatron.runs_all_rounds || p->runs_all_rounds;
    p->megatron.times_kernels = p->times_kernels;
    p->megatron.must_run_all = &p->must_run_all;
    p->megatron.twin_listener = p->twin_listener;
    p->megatron.strands = p->strands;
    p->megatron.n_strands = p->n_strands;
    p->megatron.must_run_apart = &p->must_run_apart;
    (void)me_megatron_run(e, &p->megatron, &p->comm);
}

static const me_schedule *schedule(const me_plan *plan)
{
    const char *name = plan->config->parallel.pipeline == 1 ? "none"
                       : plan->n_chunks > 1                 ? "interleaved"
                                                            : "1f1b";
    return me_schedule_find(name);
}

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

/** Under the distributed optimizer, answered by the program itself, so that no
 *  second list of a model's parameters exists. */
static me_status shard_classes(const me_plan *plan, int32_t rank, me_diag *diag,
                               int32_t *class_out, me_shard_kin *kin)
{
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
                                        &program.comm, experts, class_out, kin);
        status = me_engine_status(engine, diag);
    }
    me_program_fini(&program);
    me_engine_destroy(engine);
    me_free(experts);
    return status;
}

const me_program_kind me_megatron_program = {
    .init = init,
    .run = run,
    .shard_classes = shard_classes,
    .can_have_strands = me_megatron_can_have_strands,
    .schedule = schedule,
    .host = ME_HOST_OF_MEGATRON,
};
