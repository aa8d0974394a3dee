/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/program.h"

#include "base/alloc.h"
#include "tensor/strand.h"

/** One row a framework. */
static const me_program_kind *const kinds[] = {
    [ME_FRAMEWORK_MEGATRON] = &me_megatron_program,
    [ME_FRAMEWORK_TORCH] = &me_torch_program,
};

const me_program_kind *me_program_kind_of(const me_plan *plan)
{
    return kinds[plan->config->framework];
}

static me_communicators communicators(const me_plan *plan, int32_t rank)
{
    me_communicators comm = {.self = NULL};
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        const me_group group =
            me_grid_group(&plan->grid, (me_group_kind)kind, rank);
        comm.size[kind] = group.size;
        comm.index[kind] = me_group_index(&group, rank);
    }
    const me_group stages = me_grid_group(&plan->grid, ME_GROUP_PIPELINE, rank);
    comm.stage_stride = stages.n_axes > 0 ? stages.axes[0].stride : 0;
    const me_group experts = me_grid_group(&plan->grid, ME_GROUP_EXPERT, rank);
    comm.expert_stride = experts.n_axes > 0 ? experts.axes[0].stride : 0;
    const me_group context = me_grid_group(&plan->grid, ME_GROUP_CONTEXT, rank);
    comm.context_stride = context.n_axes > 0 ? context.axes[0].stride : 0;
    return comm;
}

me_status me_program_init(const me_plan *plan, int32_t rank,
                          me_program *program_out)
{
    *program_out = (me_program){
        .kind = me_program_kind_of(plan),
        .comm = communicators(plan, rank),
        .iterations = plan->config->train.iterations,
    };
    return program_out->kind->init(plan, rank, program_out);
}

me_status me_program_add_strand(const me_plan *plan, int32_t rank,
                                me_program *program)
{
    if (program->strands == NULL) {
        program->strands = me_alloc(ME_STRANDS_MAX, sizeof *program->strands,
                                    "program.strands");
        if (program->strands == NULL) {
            return ME_ERR_NOMEM;
        }
        program->strands[program->n_strands++] = program->comm;
    }
    program->strands[program->n_strands++] = communicators(plan, rank);
    return ME_OK;
}

void me_program_run(me_engine *e, me_program *program)
{
    program->kind->run(e, program);
}

void me_program_fini(me_program *program)
{
    me_free(program->chunks);
    me_free(program->strands);
    program->chunks = NULL;
    program->strands = NULL;
    program->n_strands = 0;
}

me_status me_program_shard_classes(void *self, const me_plan *plan,
                                   int32_t rank, me_diag *diag,
                                   int32_t *class_out, me_shard_kin *kin)
{
    (void)self;
    return me_program_kind_of(plan)->shard_classes(plan, rank, diag, class_out,
                                                   kin);
}

const me_schedule *me_program_schedule(const me_plan *plan)
{
    return me_program_kind_of(plan)->schedule(plan);
}
