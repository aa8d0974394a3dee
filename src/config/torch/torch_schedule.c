/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/torch_schedule.h"

#include "base/alloc.h"
#include "config/config_private.h"
#include "config/schedule_choice.h"

static bool has_file(const me_config *config)
{
    return config->pipeline.file[0] != '\0';
}

/** The option and its value, as an error begins. */
static me_status fail(const me_config *config, me_status status,
                      const char *what, me_diag *diag)
{
    return me_fail(
        diag, status, "pipeline.schedule%s = \"%s\": %s",
        has_file(config) ? "_file" : "",
        has_file(config) ? config->pipeline.file : config->pipeline.name, what);
}

bool me_torch_has_loop(const me_config *config)
{
    const me_schedule *schedule = me_schedule_find(config->pipeline.name);
    return config->parallel.pipeline == 1 ||
           (!has_file(config) && schedule != NULL &&
            (schedule == me_schedule_find("1f1b") ||
             schedule == me_schedule_find("gpipe")));
}

static me_status check_chain(const me_config *config, me_placement placement,
                             me_diag *diag)
{
    return placement != ME_PLACEMENT_TWO_WAYS
               ? ME_OK
               : fail(config, ME_ERR_UNSUPPORTED,
                      "PyTorch's stages are one chain that every micro-batch "
                      "passes; an order of two directions, with two copies of "
                      "each stage, it refuses",
                      diag);
}

me_status me_torch_check_schedule(const me_config *config, me_diag *diag)
{
    if (has_file(config)) {
        return config->pipeline.name[0] == '\0'
                   ? ME_OK
                   : me_fail(diag, ME_ERR_CONFIG,
                             "pipeline.schedule and pipeline.schedule_file "
                             "contradict each other: give one (--set "
                             "pipeline.schedule= takes the first away)");
    }
    const me_schedule *schedule = me_schedule_find(config->pipeline.name);
    if (schedule == NULL) {
        return fail(config, ME_ERR_CONFIG,
                    "must be one of torch.distributed.pipelining's, such as "
                    "ScheduleGPipe, Schedule1F1B or ScheduleZBVZeroBubble, or "
                    "another of `memest schedule list`",
                    diag);
    }
    return check_chain(config, schedule->placement, diag);
}

/** What a file does to the parameters of one stage. */
typedef struct of_stage {
    bool is_gathered;
    bool is_whole;
    bool is_reduced;
} of_stage;

static void look_at(const me_actions *actions, of_stage *stages)
{
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        of_stage *s = &stages[a->stage];
        s->is_reduced |= a->kind == ME_ACTION_REDUCE_GRAD;
        s->is_gathered |= a->kind == ME_ACTION_UNSHARD;
        if (a->kind == ME_ACTION_UNSHARD || a->kind == ME_ACTION_RESHARD) {
            s->is_whole = a->kind == ME_ACTION_UNSHARD;
        }
    }
}

/** A stage of fully_shard is gathered and reduced by the schedule alone. */
static me_status check_shards(const me_config *config,
                              const me_pipeline_order *order, me_diag *diag)
{
    of_stage *stages =
        me_alloc((size_t)order->n_stages, sizeof *stages, "torch.stages");
    if (stages == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for an order");
    }
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        look_at(&order->ranks[rank], stages);
    }
    me_status status = ME_OK;
    for (int32_t s = 0; status == ME_OK && s < order->n_stages; s++) {
        const char *what =
            !stages[s].is_gathered ? "UNSHARD: it would compute in shards"
            : stages[s].is_whole ? "RESHARD behind its last UNSHARD: the next "
                                   "step cannot gather it again"
            : !stages[s].is_reduced
                ? "REDUCE_GRAD: its gradients would not be reduced"
                : NULL;
        if (what != NULL) {
            status =
                me_fail_at(diag, ME_ERR_CONFIG, config->pipeline.file, 0,
                           "stage %d, of fully_shard, has no %s", (int)s, what);
        }
    }
    me_free(stages);
    return status;
}

me_status me_torch_check_order(const me_config *config,
                               const me_pipeline_order *order, me_diag *diag)
{
    const me_status status = check_chain(config, order->placement, diag);
    if (status != ME_OK) {
        return status;
    }
    if (!me_pipeline_order_is_even(order)) {
        return fail(config, ME_ERR_UNSUPPORTED,
                    "not modelled: ranks with different numbers of stages",
                    diag);
    }
    const bool is_complete = me_pipeline_order_has_transfers(order);
    if (!is_complete && me_pipeline_order_has_work_on_parameters(order)) {
        return fail(config, ME_ERR_CONFIG,
                    "UNSHARD, RESHARD and REDUCE_GRAD without sends and "
                    "receives: PyTorch reads what is computed alone "
                    "(compute_only), or everything (compute_comms)",
                    diag);
    }
    if (!is_complete ||
        config->torch.data_parallel != ME_DATA_PARALLEL_FULLY_SHARD) {
        return ME_OK;
    }
    return config->torch.unshard_stages
               ? check_shards(config, order, diag)
               : fail(config, ME_ERR_UNSUPPORTED,
                      "not modelled: sends and receives of a file with "
                      "fully_shard and torch.unshard_stages = false",
                      diag);
}

me_status me_torch_note_schedule(me_config *config, me_diag *diag)
{
    if (has_file(config)) {
        return me_config_assume(config, diag,
                                "%s is run by _PipelineScheduleRuntime, as its "
                                "_load_csv() would read it",
                                config->pipeline.file);
    }
    const me_schedule *schedule = me_schedule_find(config->pipeline.name);
    return schedule->torch_name != NULL
               ? ME_OK
               : me_config_assume(config, diag,
                                  "PyTorch 2.11 has no class for %s: its order "
                                  "is run by _PipelineScheduleRuntime, as from "
                                  "a file",
                                  schedule->name);
}
