/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "run/fit_run.h"

struct memest_fitting {
    memest_report report; /**< of the job as it is; its run is the fitting's */
    me_fit_run *run;
    memest_report *reports; /**< of the changes, borrowed from the run; owned */
};

static const me_fit none = {.offers = NULL};

/** Nothing was looked for: no offers. */
static const me_fit *fit_of(const memest_fitting *f)
{
    const me_fit *fit = me_fit_run_result(f->run);
    return fit == NULL ? &none : fit;
}

static me_status look(memest_fitting *f, const memest_job *job,
                      const memest_fit_options *asked, me_diag *diag)
{
    const me_run_options options = {.strict = asked->strict,
                                    .threads = asked->threads};
    const me_fit_request request = {.strict = asked->strict,
                                    .is_quick = asked->is_quick,
                                    .threads = asked->threads};
    me_api_run *base = &f->report.run;
    me_status status = me_api_plan(job, &options, diag, base);
    if (status == ME_OK) {
        status = me_run_simulate(base->run, diag);
    }
    if (status == ME_OK) {
        status = me_fit_run_create(base->transport, job->config, base->run,
                                   &request, diag, &f->run);
    }
    if (status != ME_OK) {
        return status;
    }
    me_run_set_fit(base->run, me_fit_run_result(f->run));
    f->report.report = me_run_report(base->run);
    const me_fit *fit = fit_of(f);
    const size_t n = fit->offers == NULL ? 0 : fit->n_offers;
    f->reports = me_alloc(n, sizeof *f->reports, "api.fitting");
    if (f->reports == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for what fits");
    }
    for (size_t i = 0; i < n; i++) {
        f->reports[i].report = fit->offers[i].report;
    }
    return ME_OK;
}

memest_status memest_fit(const memest_job *job,
                         const memest_fit_options *options,
                         memest_fitting **fitting_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    memest_fit_options asked;
    if (!me_api_read(options, &asked, sizeof asked)) {
        return me_api_status(
            me_fail(diag, ME_ERR_CONFIG,
                    "struct_size of the options is too small: begin with "
                    "MEMEST_INIT(memest_fit_options)"));
    }
    memest_fitting *f = me_alloc(1, sizeof *f, "api.fitting");
    if (f == NULL) {
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory for what fits"));
    }
    const me_status status =
        me_alloc_check(lost, look(f, job, &asked, diag), diag);
    if (status != ME_OK) {
        memest_fitting_destroy(f);
        return me_api_status(status);
    }
    *fitting_out = f;
    return MEMEST_OK;
}

void memest_fitting_destroy(memest_fitting *fitting)
{
    if (fitting != NULL) {
        me_fit_run_destroy(fitting->run);
        me_api_run_fini(&fitting->report.run);
        me_free(fitting->reports);
        me_free(fitting);
    }
}

const memest_report *memest_fitting_report(const memest_fitting *fitting)
{
    return &fitting->report;
}

bool memest_fitting_count(const memest_fitting *fitting,
                          memest_fit_counts *counts_out)
{
    const me_fit *fit = fit_of(fitting);
    const memest_fit_counts whole = {
        .has_searched = fit != &none,
        .tried = fit->n_tried,
        .refused = fit->n_refused,
        .do_not_fit = fit->n_over,
        .equal = fit->n_equal,
        .not_simulated = fit->n_left,
        .together = fit->n_together,
        .closest = fit->n_offers == 0 ? fit->closest : NULL,
        .closest_bytes = fit->n_offers == 0 ? fit->closest_bytes : 0,
    };
    return me_api_fill(counts_out, &whole, sizeof whole);
}

size_t memest_fitting_n_changes(const memest_fitting *fitting)
{
    return fit_of(fitting)->n_offers;
}

bool memest_fitting_change(const memest_fitting *fitting, size_t index,
                           memest_fit_change *change_out)
{
    const me_fit *fit = fit_of(fitting);
    if (index >= fit->n_offers) {
        return false;
    }
    const me_fit_offer *offer = &fit->offers[index];
    const me_verdict *verdict = &offer->report->verdict;
    const me_report_time *time = &offer->report->time;
    const memest_fit_change whole = {
        .name = offer->name,
        .assignments = offer->assignments,
        .flags = offer->flags,
        .changes_numerics = offer->changes_numerics,
        .place = offer->place,
        .is_tie = offer->is_tie,
        .risk = (memest_risk)verdict->risk,
        .worst_rank = verdict->worst_rank,
        .worst_bytes = verdict->worst_bytes,
        .capacity_bytes = verdict->capacity_bytes,
        .has_step = time->step != NULL,
        .is_lower_bound = time->step != NULL && time->host_lacks != NULL,
        .step = time->step == NULL ? 0 : 1e-9 * (double)time->step->step_ns,
        .tokens_per_second = time->tokens_per_second,
    };
    return me_api_fill(change_out, &whole, sizeof whole);
}

const memest_report *memest_fitting_change_report(const memest_fitting *fitting,
                                                  size_t index)
{
    return index < fit_of(fitting)->n_offers ? &fitting->reports[index] : NULL;
}

memest_status memest_fitting_text(const memest_fitting *fitting,
                                  memest_format format, char **text_out,
                                  size_t *length_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_str text = {0};
    const bool is_json = format == MEMEST_FORMAT_JSON;
    const me_status status =
        !is_json && format != MEMEST_FORMAT_TEXT
            ? me_fail(diag, ME_ERR_CONFIG,
                      "what fits is not written in format %d", (int)format)
            : me_report_append(fitting->report.report,
                               is_json ? ME_FORMAT_JSON : ME_FORMAT_FIT, diag,
                               &text);
    return me_api_text(me_alloc_check(lost, status, diag), &text, diag,
                       text_out, length_out);
}
