/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include "base/alloc.h"
#include "config/framework.h"
#include "config/schedule_choice.h"
#include "model/cp_comm.h"
#include "plan/token_counts.h"

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
    me_pipeline pipeline = me_config_pipeline(config);
    pipeline.rank = c.at[ME_AXIS_PIPELINE];
    pipeline.chunks = plan->n_chunks;
    return pipeline;
}

/** Pipeline rank that keeps a copy of the first's embedding: that of tied
 *  output weights, or of multi-token prediction. 0: none. */
static int32_t embedding_copy(const me_plan *plan)
{
    const me_layer_split *split = &plan->split;
    const int32_t mtp = me_layer_split_mtp_stage(split);
    if (split->is_tied || split->pipeline == 1) {
        return split->pipeline - 1;
    }
    return mtp < 0 ? 0 : mtp % split->pipeline;
}

static me_status make_grid(me_plan *plan, me_diag *diag)
{
    const me_config *config = plan->config;
    const me_parallel_config *p = &config->parallel;
    return me_grid_init(
        &(me_grid_sizes){
            .world = p->world_size,
            .tensor = p->tensor,
            .context = p->context,
            .pipeline = p->pipeline,
            .expert = p->expert,
            .expert_tensor = p->expert_tensor,
            .instances = config->optimizer.num_instances,
            .data_replicate = config->torch.data_parallel_replicate,
            .context_heads = config->parallel.context_heads,
            .pipeline_before_data = p->tp_pp_dp_mapping,
            .embedding_copy = embedding_copy(plan),
        },
        diag, &plan->grid);
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
        .has_mtp = config->model.mtp_num_layers > 0,
        .layout = has_layout ? &plan->layout : NULL,
    };
    me_schedule_shape shape = {.copies = 1};
    const me_status status = me_config_schedule_shape(config, diag, &shape);
    plan->split.copies = shape.copies;
    plan->n_chunks = plan->split.chunks * shape.copies;
    return status == ME_OK ? me_layer_split_check(&plan->split, diag) : status;
}

/** The order that the job's pipeline runs in, and where its stages stand. */
static me_status make_order(me_plan *plan, me_diag *diag)
{
    const me_pipeline p = me_plan_pipeline(plan, 0);
    const me_status status =
        me_config_order(plan->config, &p, diag, &plan->order);
    if (status != ME_OK || plan->order == NULL) {
        return status;
    }
    plan->stage_of = me_alloc((size_t)p.ranks * (size_t)p.chunks,
                              sizeof *plan->stage_of, "plan.stages");
    if (plan->stage_of == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    for (int32_t rank = 0; rank < p.ranks; rank++) {
        for (int32_t i = 0; i < plan->order->ranks[rank].count; i++) {
            const me_action *a = &plan->order->ranks[rank].items[i];
            plan->stage_of[rank * p.chunks + a->chunk] =
                me_placement_model_stage(plan->order->placement,
                                         plan->order->n_stages, a->stage);
        }
    }
    plan->split.stage_of = plan->stage_of;
    return ME_OK;
}

/**
 * Do tensor ranks that are not the first differ in what they own or call? Where
 * experts are cut over another number of ranks they stand in different places
 * of their experts' groups; under a parallelize_plan each receives its parts
 * from the first, and the last ones' may be smaller.
 */
static bool tells_tensor_ranks(const me_plan *plan)
{
    const me_parallel_config *p = &plan->config->parallel;
    const me_layer_tree *tree = plan->config->torch_job.tree;
    if (tree != NULL && tree->n_styles > 0) {
        return true;
    }
    return plan->config->optimizer.distributed &&
           plan->config->moe.num_experts > 0 && p->expert_tensor != p->tensor;
}

/** How many tensor ranks programs know. */
static int32_t tensor_kinds(const me_plan *plan)
{
    return tells_tensor_ranks(plan) ? plan->config->parallel.tensor : 2;
}

static int32_t tensor_kind(const me_plan *plan, int32_t tensor_rank)
{
    return tells_tensor_ranks(plan) ? tensor_rank : tensor_rank > 0;
}

/** Places in a sequence that programs know: who deals out heads has all of it,
 *  everybody else other rows to look at than the next rank; and tokens are shifted
 *  from one rank to the next for multi-token prediction. */
static int32_t context_kinds(const me_plan *plan)
{
    const me_parallel_config *p = &plan->config->parallel;
    const bool has_rows = me_cp_comm_has(p, ME_CP_COMM_P2P) ||
                          me_cp_comm_has(p, ME_CP_COMM_ALL_GATHER) ||
                          me_cp_comm_has(p, ME_CP_COMM_A2A_P2P) ||
                          plan->config->model.mtp_num_layers > 0;
    return has_rows ? p->context : 1;
}

/** Rows of a table of shard classes: one a stage, and a kind of tensor rank if
 *  those differ. */
static int32_t shard_rows(const me_plan *plan)
{
    const int32_t stages = plan->config->parallel.pipeline;
    return tells_tensor_ranks(plan) ? stages * tensor_kinds(plan) : stages;
}

static bool shards_parameters(const me_plan *plan)
{
    return me_framework_traits_of(plan->config)
        ->shards_parameters(plan->config);
}

/** Ranks that share the shards of a stage. */
static int32_t shard_ranks(const me_plan *plan)
{
    return me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, 0).size;
}

int32_t me_plan_shard_row(const me_plan *plan, int32_t rank)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    const int32_t stage = c.at[ME_AXIS_PIPELINE];
    return tells_tensor_ranks(plan)
               ? stage * tensor_kinds(plan) +
                     tensor_kind(plan, c.at[ME_AXIS_TENSOR])
               : stage;
}

/**
 * What tells programs apart: the stage; whether the rank is the first of its
 * tensor group, which alone counts replicated gradients and reads the data; its
 * place among those that share a sequence; and with the distributed optimizer
 * or FSDP2 the shard.
 */
static int64_t program_key(const me_plan *plan, int32_t rank)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    const int32_t stage = c.at[ME_AXIS_PIPELINE];
    const int64_t row = (int64_t)stage * tensor_kinds(plan) +
                        tensor_kind(plan, c.at[ME_AXIS_TENSOR]);
    const int32_t places = context_kinds(plan);
    const int64_t key = row * places + c.at[ME_AXIS_CONTEXT] % places;
    if (!shards_parameters(plan)) {
        return key;
    }
    const me_group group =
        me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, rank);
    const int32_t index = me_group_index(&group, rank);
    const int32_t shard =
        plan->shard_class == NULL
            ? index
            : plan->shard_class[me_plan_shard_row(plan, rank) * group.size +
                                index];
    return key * group.size + shard;
}

/** Kinds of ranks by the experts that they have: if not all get the same, those of
 *  each expert rank get other tokens, and each of the tensor ranks that they are
 *  cut over another part. */
static int32_t expert_kinds(const me_plan *plan)
{
    const me_parallel_config *p = &plan->config->parallel;
    return me_routing_is_uniform(&plan->routing) ? 1
                                                 : p->expert * p->expert_tensor;
}

static int32_t expert_kind(const me_plan *plan, int32_t rank)
{
    if (expert_kinds(plan) == 1) {
        return 0;
    }
    const me_group group = me_grid_group(&plan->grid, ME_GROUP_EXPERT, rank);
    const me_group parts =
        me_grid_group(&plan->grid, ME_GROUP_EXPERT_TENSOR, rank);
    return me_group_index(&group, rank) * parts.size +
           me_group_index(&parts, rank);
}

/** Ranks one after the other by class. */
static void sort_members(me_plan *plan)
{
    const int32_t world = plan->config->parallel.world_size;
    int32_t *first = plan->first_member;
    for (int32_t c = 0; c <= plan->n_classes; c++) {
        first[c] = 0;
    }
    for (int32_t rank = 0; rank < world; rank++) {
        first[plan->class_of[rank] + 1]++;
    }
    for (int32_t c = 0; c < plan->n_classes; c++) {
        first[c + 1] += first[c];
    }
    for (int32_t rank = 0; rank < world; rank++) {
        plan->members[first[plan->class_of[rank]]++] = rank;
    }
    for (int32_t c = plan->n_classes; c > 0; c--) {
        first[c] = first[c - 1];
    }
    first[0] = 0;
}

/** Keys that programs of ranks can have that fold, whatever the columns of their
 *  experts. */
static int64_t folded_keys(const me_plan *plan)
{
    return (int64_t)tensor_kinds(plan) * context_kinds(plan) *
           plan->config->parallel.pipeline * shard_ranks(plan) *
           expert_kinds(plan);
}

/** The class of a key and a column, of those that begin at @p first (+ 1), linked
 *  by @p next (+ 1); -1: none. */
static int32_t find_class(const me_plan *plan, int32_t first,
                          const int32_t *next, int32_t column)
{
    int32_t c = first - 1;
    while (c >= 0 && plan->column_of[plan->members[c]] != column) {
        c = next[c] - 1;
    }
    return c;
}

/** Classes in the order of their lowest rank, of ranks whose key and column are
 *  the same. */
static me_status make_classes(me_plan *plan, bool folds, me_diag *diag)
{
    const int32_t world = plan->config->parallel.world_size;
    int32_t *first = me_alloc((size_t)(folds ? folded_keys(plan) : world),
                              sizeof(int32_t), "plan.keys");
    int32_t *next = me_alloc((size_t)world, sizeof(int32_t), "plan.keys");
    if (first == NULL || next == NULL) {
        me_free(first);
        me_free(next);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    plan->n_classes = 0;
    for (int32_t rank = 0; rank < world; rank++) {
        const int64_t key = folds
                                ? program_key(plan, rank) * expert_kinds(plan) +
                                      expert_kind(plan, rank)
                                : rank;
        int32_t c = find_class(plan, first[key], next, plan->column_of[rank]);
        if (c < 0) {
            c = plan->n_classes++;
            plan->members[c] = rank; // its lowest, until all are known
            next[c] = first[key];
            first[key] = c + 1;
        }
        plan->class_of[rank] = c;
    }
    sort_members(plan);
    me_free(first);
    me_free(next);
    return ME_OK;
}

static me_status alloc_classes(me_plan *plan, me_diag *diag)
{
    const size_t n = (size_t)plan->config->parallel.world_size;
    plan->class_of = me_alloc(n, sizeof(int32_t), "plan.classes");
    plan->members = me_alloc(n, sizeof(int32_t), "plan.classes");
    plan->first_member = me_alloc(n + 1, sizeof(int32_t), "plan.classes");
    return plan->class_of == NULL || plan->members == NULL ||
                   plan->first_member == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan")
               : ME_OK;
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
        status = make_grid(plan, diag);
    }
    if (status == ME_OK) {
        status = make_order(plan, diag);
    }
    if (status == ME_OK) {
        status = me_plan_route(plan, diag);
    }
    if (status == ME_OK) {
        status = me_plan_find_columns(plan, diag);
    }
    if (status == ME_OK) {
        status = alloc_classes(plan, diag);
    }
    if (status == ME_OK) {
        status = make_classes(plan, folds, diag);
    }
    if (status != ME_OK) {
        me_plan_destroy(plan);
        return status;
    }
    *plan_out = plan;
    return ME_OK;
}

/** The lowest rank of a stage with a tensor rank. */
static int32_t rank_at(const me_plan *plan, int32_t stage, int32_t tensor)
{
    const me_coordinates c = {
        .at = {[ME_AXIS_PIPELINE] = stage, [ME_AXIS_TENSOR] = tensor}};
    return me_grid_rank(&plan->grid, ME_GRID_DENSE, &c);
}

me_status me_plan_fold_shards(me_plan *plan, const me_shard_classes *shards,
                              me_diag *diag)
{
    if (!shards_parameters(plan)) {
        return ME_OK;
    }
    const int32_t rows = shard_rows(plan);
    const int32_t kinds = rows / plan->config->parallel.pipeline;
    const int32_t ranks = shard_ranks(plan);
    int32_t *table =
        me_alloc((size_t)rows * (size_t)ranks, sizeof *table, "plan.shards");
    plan->shard_kin =
        me_alloc((size_t)rows, sizeof *plan->shard_kin, "plan.shards");
    plan->n_shard_rows = plan->shard_kin == NULL ? 0 : rows;
    me_status status = ME_OK;
    if (table == NULL || plan->shard_kin == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the plan");
    }
    for (int32_t i = 0; i < rows && status == ME_OK; i++) {
        status = shards->find(
            shards->self, plan, rank_at(plan, i / kinds, i % kinds), diag,
            table + (size_t)i * (size_t)ranks, &plan->shard_kin[i]);
    }
    if (status != ME_OK) {
        me_free(table);
        return status;
    }
    plan->shard_class = table;
    status = make_classes(plan, true, diag);
    return status == ME_OK ? me_plan_find_kin(plan, diag) : status;
}

const int32_t *me_plan_members(const me_plan *plan, int32_t class_id,
                               int32_t *count_out)
{
    const int32_t first = plan->first_member[class_id];
    *count_out = plan->first_member[class_id + 1] - first;
    return plan->members + first;
}

void me_plan_destroy(me_plan *plan)
{
    if (plan != NULL) {
        me_free(plan->column_of);
        me_free(plan->class_of);
        me_layout_fini(&plan->layout);
        me_pipeline_order_destroy(plan->order);
        me_free(plan->stage_of);
        me_free(plan->members);
        me_free(plan->first_member);
        for (int32_t i = 0; i < plan->n_shard_rows; i++) {
            me_shard_kin_fini(&plan->shard_kin[i]);
        }
        me_free(plan->shard_kin);
        me_free(plan->shard_class);
        me_free(plan->kin_of);
        me_free(plan->is_moe_layer);
        me_routing_fini(&plan->routing);
        me_free(plan);
    }
}

/** A tree of layers: what stands in a stage are children of its root. */
static void dump_children(const me_layer_spec *root, const me_stage *s,
                          me_str *text)
{
    if (root->n_children == 0 || s->n_layers == 0) {
        me_str_append(text, " the module");
        return;
    }
    me_str_append(text, " modules");
    for (int32_t i = 0; i < s->n_layers; i++) {
        me_str_printf(text, " %s", root->children[s->first_layer + i].name);
    }
}

static void dump_rank(const me_plan *plan, int32_t rank, me_str *text)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    const me_coordinates of_experts =
        me_grid_coordinates(&plan->grid, ME_GRID_EXPERT, rank);
    me_str_printf(text, "rank %d: class %d tp %d cp %d ep %d dp %d pp %d", rank,
                  plan->class_of[rank], c.at[ME_AXIS_TENSOR],
                  c.at[ME_AXIS_CONTEXT], of_experts.at[ME_AXIS_EXPERT],
                  me_grid_data_rank(&plan->grid, ME_GRID_DENSE, &c),
                  c.at[ME_AXIS_PIPELINE]);
    for (int32_t chunk = 0; chunk < plan->n_chunks; chunk++) {
        const me_stage s = me_plan_stage(plan, rank, chunk);
        me_str_printf(text, " | chunk %d:", chunk);
        if (plan->config->torch_job.tree != NULL) {
            dump_children(&plan->config->torch_job.tree->root, &s, text);
            continue;
        }
        if (s.has_embedding) {
            me_str_append(text, " embedding");
        }
        if (s.n_layers > 0) {
            me_str_printf(text, " layers %d-%d", s.first_layer,
                          s.first_layer + s.n_layers - 1);
        }
        if (s.has_mtp) {
            me_str_append(text, " mtp");
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
