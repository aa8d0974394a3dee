/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/schedule_choice.h"

#include "base/input.h"
#include "config/config_private.h"
#include "config/framework.h"
#include "parallel/schedule_lower.h"
#include "parallel/timeline.h"

#include <stdio.h>

me_status me_schedule_named(const char *where, const char *name, me_diag *diag,
                            const me_schedule **schedule_out)
{
    const me_schedule *schedule = me_schedule_find(name);
    if (schedule != NULL) {
        *schedule_out = schedule;
        return ME_OK;
    }
    me_str names = {0};
    for (uint32_t i = 0; (schedule = me_schedule_at(i)) != NULL; i++) {
        me_str_printf(&names, "%s%s", i == 0 ? "" : ", ", schedule->name);
    }
    const me_status status =
        me_fail(diag, ME_ERR_CONFIG, "%s: no schedule is called \"%s\": %s",
                where, name, me_str_text(&names));
    me_str_fini(&names);
    return status;
}

me_status me_schedule_file_read(const char *path, me_csv_dialect dialect,
                                me_diag *diag, me_pipeline_order **order_out)
{
    me_str bytes = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &bytes);
    if (status == ME_OK) {
        status = me_schedule_csv_read(me_str_text(&bytes), bytes.length,
                                      &(me_csv_options){.where = path,
                                                        .has_transfers = true,
                                                        .dialect = dialect},
                                      diag, order_out);
    }
    me_str_fini(&bytes);
    return status;
}

static bool has_file(const me_config *config)
{
    return config->pipeline.file[0] != '\0';
}

/** What Megatron-LM's get_forward_backward_func() chooses. */
static const char *own_schedule(const me_config *config)
{
    const me_parallel_config *p = &config->parallel;
    return p->pipeline == 1           ? "none"
           : p->virtual_pipeline == 1 ? "1f1b"
                                      : "interleaved";
}

bool me_config_has_own_schedule(const me_config *config)
{
    const char *name = config->pipeline.name;
    return !has_file(config) &&
           (name[0] == '\0' ||
            me_schedule_find(name) == me_schedule_find(own_schedule(config)));
}

static bool are_equal(const me_actions *a, const me_actions *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (int32_t i = 0; i < a->count; i++) {
        const me_action *x = &a->items[i];
        const me_action *y = &b->items[i];
        if (x->kind != y->kind || x->microbatch != y->microbatch ||
            x->stage != y->stage) {
            return false;
        }
    }
    return true;
}

me_pipeline me_config_pipeline(const me_config *config)
{
    return (me_pipeline){
        .ranks = config->parallel.pipeline,
        .microbatches = config->train.num_microbatches,
        .chunks = config->parallel.virtual_pipeline,
        .group_size = config->parallel.microbatch_group_size,
        .extra_warmup = config->moe.overlap_expert_comm,
        .memory_limit = config->pipeline.memory_limit,
    };
}

me_status me_config_file_is_own_schedule(const me_config *config, me_diag *diag,
                                         bool *is_own_out)
{
    const me_schedule *own = me_schedule_find(own_schedule(config));
    const me_pipeline pipeline = me_config_pipeline(config);
    *is_own_out = false;
    me_pipeline_order *order = NULL;
    me_pipeline_order *expected = NULL;
    if (!has_file(config) || me_schedule_check(own, &pipeline, NULL) != ME_OK ||
        me_schedule_file_read(config->pipeline.file, ME_CSV_GUESS, NULL,
                              &order) != ME_OK ||
        order->n_ranks != pipeline.ranks) {
        me_pipeline_order_destroy(order);
        return ME_OK;
    }
    const me_status status =
        me_pipeline_order_create(own, &pipeline, diag, &expected);
    *is_own_out = status == ME_OK;
    for (int32_t r = 0; r < order->n_ranks && *is_own_out; r++) {
        *is_own_out = are_equal(&order->ranks[r], &expected->ranks[r]);
    }
    me_pipeline_order_destroy(expected);
    me_pipeline_order_destroy(order);
    return status;
}

me_status me_config_note_work_on_parameters(me_config *config, me_diag *diag)
{
    me_pipeline_order *order = NULL;
    if (!has_file(config) ||
        me_schedule_file_read(config->pipeline.file, ME_CSV_GUESS, NULL,
                              &order) != ME_OK) {
        return ME_OK; // what is wrong is said by me_config_order()
    }
    const bool has_work = me_pipeline_order_has_work_on_parameters(order);
    me_pipeline_order_destroy(order);
    return has_work ? me_config_assume(
                          config, diag,
                          "UNSHARD, RESHARD and REDUCE_GRAD of %s are passed "
                          "over: Megatron-LM gathers and reduces parameters by "
                          "rules of its own",
                          config->pipeline.file)
                    : ME_OK;
}

static me_schedule_shape shape_of(me_placement placement, int32_t chunks)
{
    return placement == ME_PLACEMENT_TWO_WAYS
               ? (me_schedule_shape){.chunks = 1, .copies = 2}
               : (me_schedule_shape){.chunks = chunks, .copies = 1};
}

me_status me_config_schedule_shape(const me_config *config, me_diag *diag,
                                   me_schedule_shape *shape_out)
{
    *shape_out = (me_schedule_shape){.chunks = 0, .copies = 1};
    if (has_file(config)) {
        me_pipeline_order *order = NULL;
        const me_status status = me_schedule_file_read(
            config->pipeline.file, ME_CSV_GUESS, diag, &order);
        if (status == ME_OK) {
            *shape_out = shape_of(order->placement, order->n_chunks);
        }
        me_pipeline_order_destroy(order);
        return status;
    }
    if (config->pipeline.name[0] == '\0') {
        return ME_OK;
    }
    const me_schedule *schedule = NULL;
    const me_status status = me_schedule_named(
        "pipeline.schedule", config->pipeline.name, diag, &schedule);
    if (status == ME_OK && schedule->placement != ME_PLACEMENT_LOOP) {
        *shape_out = shape_of(schedule->placement, 2);
    }
    return status;
}

static me_status check_file(const me_config *config,
                            const me_pipeline *pipeline,
                            const me_pipeline_order *order, me_diag *diag)
{
    const char *file = config->pipeline.file;
    if (order->n_ranks != pipeline->ranks) {
        return me_fail_at(diag, ME_ERR_CONFIG, file, 0,
                          "%d rows, but parallel.pipeline = %d ranks",
                          order->n_ranks, pipeline->ranks);
    }
    if (order->n_microbatches != pipeline->microbatches) {
        return me_fail_at(diag, ME_ERR_CONFIG, file, 0,
                          "%d micro-batches, but the job has %d: "
                          "train.global_batch_size says how many",
                          order->n_microbatches, pipeline->microbatches);
    }
    if (order->n_stages != pipeline->ranks * pipeline->chunks) {
        return me_fail_at(diag, ME_ERR_CONFIG, file, 0,
                          "%d stages, but parallel.pipeline x "
                          "parallel.virtual_pipeline = %d x %d",
                          order->n_stages, pipeline->ranks, pipeline->chunks);
    }
    return ME_OK;
}

/** The order as the job gives it. */
static me_status read_order(const me_config *config,
                            const me_pipeline *pipeline, me_diag *diag,
                            me_pipeline_order **order_out)
{
    if (has_file(config)) {
        const me_status status = me_schedule_file_read(
            config->pipeline.file, ME_CSV_GUESS, diag, order_out);
        return status == ME_OK ? check_file(config, pipeline, *order_out, diag)
                               : status;
    }
    const me_schedule *schedule = NULL;
    const me_status status = me_schedule_named(
        "pipeline.schedule", config->pipeline.name, diag, &schedule);
    return status == ME_OK
               ? me_pipeline_order_create(schedule, pipeline, diag, order_out)
               : status;
}

/** Does it end? The error of a timeline names the cycle. */
static me_status check_ends(const me_pipeline_order *order, me_diag *diag)
{
    me_ticks ticks = {.forward = 1};
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *timeline = NULL;
    const me_status status = me_timeline_create(order, &model, diag, &timeline);
    me_timeline_destroy(timeline);
    return status;
}

/** An error of the order as a whole is one of its file. */
static me_status name_file(const me_config *config, me_status status,
                           me_diag *diag)
{
    if (has_file(config) && diag != NULL && diag->where[0] == '\0') {
        (void)snprintf(diag->where, sizeof diag->where, "%.*s",
                       ME_DIAG_WHERE - 1, config->pipeline.file);
    }
    return status;
}

me_status me_config_splits_backward(const me_config *config, me_diag *diag,
                                    bool *splits_out)
{
    const me_pipeline pipeline = me_config_pipeline(config);
    me_pipeline_order *order = NULL;
    const me_status status = read_order(config, &pipeline, diag, &order);
    *splits_out = false;
    for (int32_t r = 0; status == ME_OK && r < order->n_ranks; r++) {
        for (int32_t i = 0; i < order->ranks[r].count; i++) {
            *splits_out |=
                order->ranks[r].items[i].kind == ME_ACTION_INPUT_GRADIENT;
        }
    }
    me_pipeline_order_destroy(order);
    return status;
}

me_status me_config_order(const me_config *config, const me_pipeline *pipeline,
                          me_diag *diag, me_pipeline_order **order_out)
{
    me_pipeline_order *order = NULL;
    *order_out = NULL;
    const me_framework_traits *traits = me_framework_traits_of(config);
    if (traits->runs_without_order(config)) {
        return ME_OK;
    }
    me_status status = read_order(config, pipeline, diag, &order);
    if (status == ME_OK) {
        status = traits->check_order(config, order, diag);
    }
    if (status == ME_OK) {
        status = check_ends(order, diag);
    }
    if (status == ME_OK && me_pipeline_order_has_transfers(order)) {
        *order_out = order;
        return ME_OK;
    }
    if (status == ME_OK) {
        status = traits->lower_order(order, diag, order_out);
    }
    me_pipeline_order_destroy(order);
    return status == ME_OK ? ME_OK : name_file(config, status, diag);
}
