/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/runtime.h"
#include "report/sac.h"
#include "run/tool_rows.h"
#include "track/sac_modules.h"

#include <stdio.h>
#include <string.h>

/** Whose bytes can be counted. */
static const double MOST_GIB = 1e9;

/** The roofline of the job's card. */
static me_status find_roofline(me_tool *t, const me_run *run, me_diag *diag,
                               me_roofline *roofline_out)
{
    const me_job_card *card = me_run_card(run);
    (void)snprintf(t->card, sizeof t->card, "%s", card->card.name);
    return me_roofline_of(&card->rates, t->card, diag, roofline_out);
}

static me_status begin_runtime(me_tool *t, const me_roofline *roofline,
                               me_engine *e, me_diag *diag)
{
    t->runtime =
        me_runtime_estimator_create(e, t->mod, roofline, t->options.iteration);
    if (t->runtime == NULL) {
        return me_fail(diag, ME_ERR_NOMEM,
                       "no host memory for RuntimeEstimator");
    }
    if (t->options.as_memtracker) {
        me_runtime_estimator_count_queries(t->runtime);
    }
    return ME_OK;
}

static me_status begin_sac(me_tool *t, const me_roofline *roofline,
                           me_engine *e, me_diag *diag)
{
    t->sac = me_sac_estimator_create(e, t->mod, roofline, t->options.iteration);
    return t->sac == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no host memory for SACEstimator")
               : ME_OK;
}

me_status me_tool_begin_runtime(me_tool *t, const me_run *run, me_engine *e,
                                me_diag *diag)
{
    me_roofline roofline;
    const me_status status = find_roofline(t, run, diag, &roofline);
    return status == ME_OK ? begin_runtime(t, &roofline, e, diag) : status;
}

me_status me_tool_begin_sac(me_tool *t, const me_run *run, me_engine *e,
                            me_diag *diag)
{
    me_roofline roofline;
    const me_status status = find_roofline(t, run, diag, &roofline);
    return status == ME_OK ? begin_sac(t, &roofline, e, diag) : status;
}

/** MemTracker as PyTorch's is, and both estimators. */
me_status me_tool_begin_ilp(me_tool *t, const me_run *run, me_engine *e,
                            me_diag *diag)
{
    const me_mem_options options = {
        .as_memtracker = true,
        .is_input_inside = t->options.is_input_inside,
        .iteration = t->options.iteration,
    };
    me_roofline roofline;
    me_status status = find_roofline(t, run, diag, &roofline);
    if (status != ME_OK) {
        return status;
    }
    t->mem = me_mem_tracker_create(e, t->mod, &options);
    if (t->mem == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for MemTracker");
    }
    status = begin_runtime(t, &roofline, e, diag);
    return status == ME_OK ? begin_sac(t, &roofline, e, diag) : status;
}

me_status me_tool_append_runtime(const me_tool *t, const me_tool_format *format,
                                 me_diag *diag, me_str *text)
{
    (void)diag;
    if (strcmp(format->name, "json") == 0) {
        return me_runtime_json_append(text, t->runtime, t->card,
                                      format->mem.depth);
    }
    me_runtime_append(text, t->runtime, format->mem.depth);
    return me_str_status(text);
}

me_status me_tool_append_sac(const me_tool *t, const me_tool_format *format,
                             me_diag *diag, me_str *text)
{
    const me_sac_format how = {
        .depth = format->mem.depth,
        .tabulates = format->mem.tabulates,
        .has_policy = t->options.budget >= 0,
        .budget = t->options.budget,
    };
    return strcmp(format->name, "json") == 0
               ? me_sac_json_append(text, t->sac, &how, diag)
               : me_sac_append(text, t->sac, &how, diag);
}

/** Solve, and say what came out. */
static me_status append_solution(const me_tool *t, const char *format,
                                 const me_sac_graph *graph, me_diag *diag,
                                 me_str *text)
{
    const me_sac_request request = {
        .budget_gib = t->options.budget,
        .world_size = t->options.shards == 0 ? 1 : t->options.shards,
    };
    me_sac_solution *solution = NULL;
    me_status status = me_sac_ilp_solve(graph, &request, diag, &solution);
    if (status == ME_OK && strcmp(format, "json") == 0) {
        status = me_ilp_json_append(text, graph, &request, solution);
    } else if (status == ME_OK) {
        me_ilp_append(text, graph, &request, solution);
        status = me_str_status(text);
    }
    me_free(solution);
    return status;
}

me_status me_tool_append_ilp(const me_tool *t, const me_tool_format *format,
                             me_diag *diag, me_str *text)
{
    me_sac_graph *graph = NULL;
    me_status status =
        me_sac_modules_collect(t->mem, t->runtime, t->sac, diag, &graph);
    if (status == ME_OK) {
        status = append_solution(t, format->name, graph, diag, text);
    }
    me_sac_graph_destroy(graph);
    return status;
}

me_status me_tool_check_budget(const me_tool_options *options, me_diag *diag)
{
    if (options->kind == ME_TOOL_ILP && !(options->budget > 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tool ilp: --budget must be GiB above 0 that a rank "
                       "may take, such as 1.6");
    }
    if (options->kind == ME_TOOL_ILP && options->budget > MOST_GIB) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--budget %g: with --tool ilp it is GiB, %g at most",
                       options->budget, MOST_GIB);
    }
    if (options->kind == ME_TOOL_SAC && options->budget > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--budget %.9g: with --tool sac it is the part of a "
                       "module's memory that may be kept, 0 to 1",
                       options->budget);
    }
    return ME_OK;
}
