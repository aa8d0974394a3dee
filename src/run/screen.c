/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/screen.h"

#include "base/alloc.h"
#include "base/size.h"
#include "config/framework.h"
#include "report/job_report.h"
#include "time/pipeline_step.h"

/** The ranks that stand for the stages, and what is made of them. */
typedef struct screen {
    me_units *units;
    int32_t n;
    int32_t n_done;
    me_rank_result **results; /**< in the order in which they ran; borrowed */
    me_report_rank *ranks;
    me_time_program *programs; /**< by stage; borrowed from the results */
    bool is_timed;             /**< all have a program */
} screen;

static int32_t lowest_rank(const me_plan *plan, int32_t stage)
{
    const me_coordinates c = {.at = {[ME_AXIS_PIPELINE] = stage}};
    return me_grid_rank(&plan->grid, ME_GRID_DENSE, &c);
}

/** The first one, the last one, and those between. */
static int32_t stage_at(const screen *x, int32_t i)
{
    return i == 0 ? 0 : i == 1 ? x->n - 1 : i - 1;
}

static me_status simulate_stage(screen *x, int32_t stage, me_diag *diag)
{
    me_units *u = x->units;
    const me_plan *plan = u->simulation.plan;
    const int32_t rank = lowest_rank(plan, stage);
    const int32_t unit = u->are_classes ? plan->class_of[rank] : rank;
    const me_status status = me_units_run_one(u, unit, diag);
    if (status == ME_OK) {
        me_rank_result *result = u->results[unit];
        x->results[x->n_done] = result;
        x->ranks[x->n_done] =
            (me_report_rank){.place = {.rank = rank, .pp = stage},
                             .result = (uint32_t)x->n_done};
        x->programs[stage] = result->time;
        x->is_timed = x->is_timed && result->time.n_items > 0;
        x->n_done++;
    }
    return status;
}

static me_verdict judge(const screen *x)
{
    const me_simulation *s = &x->units->simulation;
    const me_report report = {.config = s->plan->config,
                              .world_size = x->n_done,
                              .results = x->results,
                              .n_results = (uint32_t)x->n_done,
                              .ranks = x->ranks,
                              .limit_bytes = s->memory_limit_bytes};
    return me_verdict_judge(&report, s->card->card.total_bytes);
}

static uint64_t outside_of(const screen *x)
{
    uint64_t least = UINT64_MAX;
    for (int32_t i = 0; i < x->n_done; i++) {
        const me_device_result *d = &x->results[i]->device;
        const uint64_t bytes =
            d->is_known
                ? d->context_bytes + d->library_bytes + d->communicator_bytes
                : 0;
        least = me_min_u64(least, bytes);
    }
    return least;
}

static me_status simulate_stages(screen *x, const me_screen_watcher *watcher,
                                 me_diag *diag, me_run_sight *sight)
{
    me_status status = ME_OK;
    bool goes_on = true;
    while (status == ME_OK && goes_on && x->n_done < x->n) {
        status = simulate_stage(x, stage_at(x, x->n_done), diag);
        if (status == ME_OK) {
            sight->verdict = judge(x);
            goes_on = watcher == NULL || watcher->goes_on == NULL ||
                      watcher->goes_on(watcher->self, &sight->verdict);
        }
    }
    sight->is_whole = x->n_done == x->n;
    return status;
}

static me_status time_step(const screen *x, me_diag *diag, int64_t *ns_out)
{
    const me_config *config = x->units->simulation.plan->config;
    me_step_time *step = NULL;
    me_diag why = {.status = ME_OK};
    if (!x->is_timed ||
        me_framework_traits_of(config)->untimed(config) != NULL) {
        return ME_OK;
    }
    const me_status status =
        me_step_time_create(x->programs, x->n, &why, &step);
    if (status == ME_OK) {
        *ns_out = step->step_ns;
    } else if (status != ME_ERR_MISMATCH) {
        *diag = why;
        return status;
    }
    me_step_time_destroy(step);
    return ME_OK;
}

me_status me_units_screen(me_units *units, const me_screen_watcher *watcher,
                          me_diag *diag, me_run_sight *sight_out)
{
    const int32_t stages = units->simulation.plan->config->parallel.pipeline;
    const size_t n = (size_t)stages;
    screen x = {.units = units, .n = stages, .is_timed = true};
    x.results = me_alloc(n, sizeof(me_rank_result *), "screen");
    x.ranks = me_alloc(n, sizeof *x.ranks, "screen");
    x.programs = me_alloc(n, sizeof *x.programs, "screen");
    *sight_out = (me_run_sight){.step_ns = 0};
    me_status status =
        x.results == NULL || x.ranks == NULL || x.programs == NULL
            ? me_fail(diag, ME_ERR_NOMEM, "no host memory for the stages")
            : simulate_stages(&x, watcher, diag, sight_out);
    if (status == ME_OK) {
        sight_out->outside_bytes = outside_of(&x);
    }
    if (status == ME_OK && sight_out->is_whole) {
        status = time_step(&x, diag, &sight_out->step_ns);
    }
    if (status == ME_OK && watcher != NULL && watcher->done_out != NULL) {
        me_units_keep(units, watcher->done_out);
    }
    me_free((void *)x.results);
    me_free(x.ranks);
    me_free(x.programs);
    return status;
}
