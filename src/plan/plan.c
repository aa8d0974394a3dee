/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include "base/alloc.h"

me_coordinates me_plan_coordinates(const me_plan *plan, int32_t rank)
{
    return me_grid_coordinates(&plan->grid, ME_GRID_DENSE, rank);
}

me_stage me_plan_stage(const me_plan *plan, int32_t rank, int32_t chunk)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    return me_layer_split_stage(&plan->split, c.at[ME_AXIS_PIPELINE], chunk);
}

me_pipeline me_plan_pipeline(const me_plan *plan, int32_t rank)
{
    const me_config *config = plan->config;
    const me_coordinates c = me_plan_coordinates(plan, rank);
    return (me_pipeline){
        .ranks = config->parallel.pipeline,
        .rank = c.at[ME_AXIS_PIPELINE],
        .microbatches = config->train.num_microbatches,
        .chunks = plan->n_chunks,
        .group_size = config->parallel.microbatch_group_size,
    };
}

static me_status make_grid(const me_config *config, me_diag *diag,
                           me_grid *grid_out)
{
    const me_parallel_config *p = &config->parallel;
    return me_grid_init(
        &(me_grid_sizes){
            .world = p->world_size,
            .tensor = p->tensor,
            .context = p->context,
            .pipeline = p->pipeline,
            .expert = p->expert,
            .pipeline_before_data = p->tp_pp_dp_mapping,
            .is_tied = !config->model.untie_embeddings_and_output_weights,
        },
        diag, grid_out);
}

static me_status make_split(me_plan *plan, me_diag *diag)
{
    const me_config *config = plan->config;
    const me_parallel_config *p = &config->parallel;
    const bool has_layout = p->pipeline_layout[0] != '\0';
    if (has_layout) {
        const me_status status =
            me_layout_init(p->pipeline_layout, diag, &plan->layout);
        if (status != ME_OK) {
            return status;
        }
    }
    plan->split = (me_layer_split){
        .n_layers = config->model.num_layers,
        .pipeline = p->pipeline,
        .chunks = p->virtual_pipeline > 1 ? p->virtual_pipeline : 1,
        .first_layers = p->decoder_first_pipeline_num_layers,
        .last_layers = p->decoder_last_pipeline_num_layers,
        .counts_embedding = p->account_for_embedding_in_pipeline_split,
        .counts_loss = p->account_for_loss_in_pipeline_split,
        .is_tied = !config->model.untie_embeddings_and_output_weights,
        .layout = has_layout ? &plan->layout : NULL,
    };
    plan->n_chunks = plan->split.chunks;
    return me_layer_split_check(&plan->split, diag);
}

/**
 * What tells programs apart: the stage; whether the rank is the first of its
 * tensor group, which alone counts replicated gradients and reads the data;
 * and with the distributed optimizer the shard.
 */
static int64_t program_key(const me_plan *plan, int32_t rank)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    const me_group group =
        me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, rank);
    int64_t key = c.at[ME_AXIS_PIPELINE];
    key = 2 * key + (c.at[ME_AXIS_TENSOR] == 0 ? 0 : 1);
    if (plan->config->optimizer.distributed) {
        key = key * group.size + me_group_index(&group, rank);
    }
    return key;
}

/** Classes in the order of their lowest rank. */
static me_status make_classes(me_plan *plan, bool folds)
{
    const int32_t world = plan->config->parallel.world_size;
    const size_t n = (size_t)world;
    plan->class_of = me_alloc(n, sizeof(int32_t), "plan.classes");
    plan->representative = me_alloc(n, sizeof(int32_t), "plan.classes");
    int32_t *class_of_key = me_alloc(4 * n, sizeof(int32_t), "plan.keys");
    me_status status = ME_ERR_NOMEM;
    if (plan->class_of == NULL || plan->representative == NULL ||
        class_of_key == NULL) {
        goto out;
    }
    for (int32_t rank = 0; rank < world; rank++) {
        const int64_t key = folds ? program_key(plan, rank) : rank;
        if (class_of_key[key] == 0) {
            plan->representative[plan->n_classes++] = rank;
            class_of_key[key] = plan->n_classes;
        }
        plan->class_of[rank] = class_of_key[key] - 1;
    }
    status = ME_OK;
out:
    me_free(class_of_key);
    return status;
}

me_status me_plan_create(const me_config *config, bool folds, me_diag *diag,
                         me_plan **plan_out)
{
    me_plan *plan = me_alloc(1, sizeof *plan, "plan");
    if (plan == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    plan->config = config;
    me_status status = make_split(plan, diag);
    if (status == ME_OK) {
        status = make_grid(config, diag, &plan->grid);
    }
    if (status == ME_OK) {
        status = make_classes(plan, folds);
    }
    if (status != ME_OK) {
        me_plan_destroy(plan);
        return status;
    }
    *plan_out = plan;
    return ME_OK;
}

void me_plan_destroy(me_plan *plan)
{
    if (plan != NULL) {
        me_free(plan->class_of);
        me_free(plan->representative);
        me_layout_fini(&plan->layout);
        me_free(plan);
    }
}

static void dump_rank(const me_plan *plan, int32_t rank, me_str *text)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    me_str_printf(text, "rank %d: class %d tp %d cp %d ep %d dp %d pp %d", rank,
                  plan->class_of[rank], c.at[ME_AXIS_TENSOR],
                  c.at[ME_AXIS_CONTEXT], c.at[ME_AXIS_EXPERT],
                  c.at[ME_AXIS_DATA], c.at[ME_AXIS_PIPELINE]);
    for (int32_t chunk = 0; chunk < plan->n_chunks; chunk++) {
        const me_stage s = me_plan_stage(plan, rank, chunk);
        me_str_printf(text, " | chunk %d:", chunk);
        if (s.has_embedding) {
            me_str_append(text, " embedding");
        }
        if (s.n_layers > 0) {
            me_str_printf(text, " layers %d-%d", s.first_layer,
                          s.first_layer + s.n_layers - 1);
        }
        if (s.has_head) {
            me_str_append(text, " head");
        }
    }
    me_str_append(text, "\n");
}

void me_plan_dump(const me_plan *plan, me_str *text)
{
    for (int32_t r = 0; r < plan->config->parallel.world_size; r++) {
        dump_rank(plan, r, text);
    }
}
