/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/evaluate.h"

#include "config/framework.h"
#include "report/comparison.h"

static void read_step(const me_compare_line *line, me_search_result *result)
{
    const me_step_time *step = me_compare_step(line);
    if (step == NULL) {
        return;
    }
    result->step_ns = step->step_ns;
    result->forward_backward_ns = step->forward_backward_ns;
    result->bubble_ns = step->bubble_ns;
    result->exposed_ns = me_compare_exposed_ns(step);
    result->is_lower_step = me_compare_is_bound(line);
}

me_status me_search_result_of(const me_report *report, me_diag *diag,
                              me_search_result *result_out)
{
    const me_compare_row row = {
        .schedule = "", .variant = "", .assignments = "", .report = report};
    const me_comparison one = {
        .version = "", .name = "", .rows = &row, .n_rows = 1};
    me_compare_line *line = NULL;
    const me_status status = me_compare_lines_create(&one, diag, &line);
    if (status != ME_OK) {
        return status;
    }
    const me_verdict *v = &report->verdict;
    const me_config *config = report->config;
    *result_out = (me_search_result){
        .risk = (int32_t)v->risk,
        .basis = (int32_t)v->basis,
        .fits = line->fits,
        .is_open = line->is_open,
        .worst_rank = v->worst_rank,
        .worst_bytes = v->worst_bytes,
        .capacity_bytes = v->capacity_bytes,
        .requested_bytes = line->worst.requested_bytes,
        .allocated_bytes = line->worst.allocated_bytes,
        .reserved_bytes = line->worst.reserved_bytes,
        .device_bytes = line->worst.device_bytes,
    };
    read_step(line, result_out);
    if (me_framework_traits_of(config)->has_tokens) {
        result_out->step_tokens =
            config->train.global_batch_size * config->model.seq_length;
    }
    me_compare_lines_destroy(line, 1);
    return ME_OK;
}

me_status me_candidate_simulate(const me_candidate *candidate,
                                const me_config *job, me_transport *transport,
                                const me_run_options *options, me_diag *diag,
                                me_search_result *result_out)
{
    me_config *config = NULL;
    me_run *run = NULL;
    me_status status = me_candidate_finish(candidate, job, diag, &config);
    if (status == ME_OK) {
        status = me_run_create(transport, config, options, diag, &run);
    }
    if (status == ME_OK) {
        status = me_run_simulate(run, diag);
    }
    if (status == ME_OK && me_transport_rank(transport) == 0) {
        status = me_search_result_of(me_run_report(run), diag, result_out);
    }
    me_run_destroy(run);
    return status;
}

/** @param config  finished; owned by it, also on failure */
static me_status screen(me_config *config, bool strict,
                        const me_screen_watcher *watcher, me_diag *diag,
                        me_run_sight *sight_out)
{
    const me_run_options options = {
        .strict = strict,
        .threads = 1,
        .events_iteration = ME_STEADY_ITERATION,
        .keeps_totals = true,
    };
    me_transport *alone = NULL;
    me_run *run = NULL;
    me_status status = me_transport_local_create(&alone);
    if (status == ME_OK) {
        status = me_run_create(alone, config, &options, diag, &run);
    } else {
        me_config_destroy(config);
    }
    if (status == ME_OK) {
        status = me_run_screen(run, watcher, diag, sight_out);
    }
    me_run_destroy(run);
    me_transport_destroy(alone);
    return status;
}

me_status me_candidate_screen(const me_candidate *candidate,
                              const me_config *job, bool strict,
                              const me_screen_watcher *watcher, me_diag *diag,
                              me_run_sight *sight_out)
{
    me_config *config = NULL;
    const me_status status = me_candidate_finish(candidate, job, diag, &config);
    return status == ME_OK ? screen(config, strict, watcher, diag, sight_out)
                           : status;
}

/** The first and the last stage have run. */
static bool has_no_end(void *self, const me_verdict *verdict)
{
    int *n_ends = self;
    (void)verdict;
    --*n_ends;
    return *n_ends > 0;
}

me_status me_candidate_outside(const me_candidate *candidate,
                               const me_config *job, me_diag *diag,
                               uint64_t *bytes_out)
{
    int n_ends = 2;
    const me_screen_watcher watcher = {has_no_end, &n_ends, NULL};
    me_config *config = NULL;
    me_run_sight sight = {.outside_bytes = 0};
    me_status status =
        me_candidate_probe(candidate, job, ME_PROBE_PLACE, 1, diag, &config);
    if (status == ME_OK) {
        status = me_config_finish(config, 1, diag);
        if (status == ME_OK) {
            status = screen(config, false, &watcher, diag, &sight);
        } else {
            me_config_destroy(config);
        }
    }
    *bytes_out = sight.outside_bytes;
    return status;
}
