/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "report/job_report.h"

/** The public numbers are the internal ones. */
_Static_assert((int)MEMEST_RISK_UNKNOWN == (int)ME_RISK_UNKNOWN &&
                   (int)MEMEST_RISK_CANNOT_SAY == (int)ME_RISK_CANNOT_SAY,
               "numbered alike");
_Static_assert((int)MEMEST_FORMAT_TEXT == (int)ME_FORMAT_TEXT &&
                   (int)MEMEST_FORMAT_JSON == (int)ME_FORMAT_JSON &&
                   (int)MEMEST_FORMAT_CSV == (int)ME_FORMAT_CSV &&
                   (int)MEMEST_FORMAT_HTML == (int)ME_FORMAT_HTML &&
                   (int)MEMEST_FORMAT_JSON_CLASSES ==
                       (int)ME_FORMAT_JSON_CLASSES &&
                   (int)MEMEST_FORMAT_CHECK == (int)ME_FORMAT_CHECK,
               "numbered alike");
_Static_assert(MEMEST_BYTES_UNKNOWN == ME_BYTES_UNKNOWN, "the same bytes");

memest_status memest_estimate(const memest_job *job,
                              const memest_estimate_options *options,
                              memest_report **report_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    memest_estimate_options asked;
    if (!me_api_read(options, &asked, sizeof asked)) {
        return me_api_status(
            me_fail(diag, ME_ERR_CONFIG,
                    "struct_size of the options is too small: begin with "
                    "MEMEST_INIT(memest_estimate_options)"));
    }
    memest_report *report = me_alloc(1, sizeof *report, "api.report");
    if (report == NULL) {
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory for the report"));
    }
    const me_run_options run_options = {
        .strict = asked.strict,
        .no_fold = asked.no_fold,
        .keeps_course = asked.keep_course,
        .threads = asked.threads,
    };
    me_status status = me_api_plan(job, &run_options, diag, &report->run);
    if (status == ME_OK) {
        status = me_run_simulate(report->run.run, diag);
    }
    status = me_alloc_check(lost, status, diag);
    if (status != ME_OK) {
        memest_report_destroy(report);
        return me_api_status(status);
    }
    report->report = me_run_report(report->run.run);
    *report_out = report;
    return MEMEST_OK;
}

void memest_report_destroy(memest_report *report)
{
    if (report != NULL) {
        me_api_run_fini(&report->run);
        me_free(report);
    }
}

int32_t memest_report_world_size(const memest_report *report)
{
    return report->report->world_size;
}

/** What a rank took; NULL: no such rank. */
static const me_rank_result *result_of(const memest_report *report,
                                       int32_t rank)
{
    const me_report *r = report->report;
    return rank >= 0 && rank < r->world_size ? r->results[r->ranks[rank].result]
                                             : NULL;
}

bool memest_report_rank(const memest_report *report, int32_t rank,
                        memest_rank *rank_out)
{
    const me_rank_result *result = result_of(report, rank);
    if (result == NULL) {
        return false;
    }
    const me_rank_place *place = &report->report->ranks[rank].place;
    const memest_rank whole = {
        .rank = place->rank,
        .tp = place->tp,
        .pp = place->pp,
        .dp = place->dp,
        .cp = place->cp,
        .ep = place->ep,
        .class_id = place->class_id,
        .parameters = result->parameters,
        .parameter_bytes = result->parameter_bytes,
    };
    return me_api_fill(rank_out, &whole, sizeof whole);
}

static bool fill_peak(const me_peak_result *peak, memest_peak *peak_out)
{
    if (peak == NULL) {
        return false;
    }
    const memest_peak whole = {
        .requested_bytes = peak->requested_bytes,
        .allocated_bytes = peak->allocated_bytes,
        .reserved_bytes = peak->reserved_bytes,
        .device_bytes = peak->device_bytes,
        .iteration = peak->iteration,
        .microbatch = peak->microbatch,
        .phase = peak->phase,
        .module = peak->module,
        .op = peak->op,
    };
    return me_api_fill(peak_out, &whole, sizeof whole);
}

bool memest_report_peak(const memest_report *report, int32_t rank,
                        memest_peak *peak_out)
{
    const me_rank_result *result = result_of(report, rank);
    return result != NULL && fill_peak(me_rank_result_peak(result), peak_out);
}

uint64_t memest_report_peak_category_bytes(const memest_report *report,
                                           int32_t rank,
                                           memest_category category)
{
    const me_rank_result *result = result_of(report, rank);
    const me_peak_result *peak =
        result == NULL ? NULL : me_rank_result_peak(result);
    return peak == NULL || (unsigned)category >= ME_CATEGORY_COUNT
               ? 0
               : peak->by_category[category];
}

size_t memest_report_n_iterations(const memest_report *report, int32_t rank)
{
    const me_rank_result *result = result_of(report, rank);
    return result == NULL ? 0 : result->n_iterations;
}

bool memest_report_iteration(const memest_report *report, int32_t rank,
                             size_t index, memest_peak *peak_out)
{
    const me_rank_result *result = result_of(report, rank);
    return result != NULL && index < result->n_iterations &&
           fill_peak(&result->iterations[index].peak, peak_out);
}

size_t memest_report_n_points(const memest_report *report, int32_t rank)
{
    const me_rank_result *result = result_of(report, rank);
    return result == NULL ? 0 : result->n_points;
}

bool memest_report_point(const memest_report *report, int32_t rank,
                         size_t index, memest_point *point_out)
{
    const me_rank_result *result = result_of(report, rank);
    if (result == NULL || index >= result->n_points) {
        return false;
    }
    const me_point_result *point = &result->points[index];
    const memest_point whole = {
        .name = point->name,
        .requested_bytes = point->requested_bytes,
        .requested_peak_bytes = point->requested_peak_bytes,
        .allocated_bytes = point->allocated_bytes,
        .allocated_peak_bytes = point->allocated_peak_bytes,
        .reserved_bytes = point->reserved_bytes,
        .reserved_peak_bytes = point->reserved_peak_bytes,
        .device_bytes = point->device_bytes,
    };
    return me_api_fill(point_out, &whole, sizeof whole);
}

size_t memest_report_n_modules(const memest_report *report, int32_t rank)
{
    const me_rank_result *result = result_of(report, rank);
    return result == NULL ? 0 : result->n_modules;
}

bool memest_report_module(const memest_report *report, int32_t rank,
                          size_t index, memest_module *module_out)
{
    const me_rank_result *result = result_of(report, rank);
    if (result == NULL || index >= result->n_modules) {
        return false;
    }
    const me_module_result *module = &result->modules[index];
    const memest_module whole = {
        .name = module->name,
        .parent = module->parent == UINT32_MAX ? SIZE_MAX : module->parent,
        .forward_peak_bytes = module->forward_peak_bytes,
        .backward_peak_bytes = module->backward_peak_bytes,
        .parameters = module->parameters,
        .parameter_bytes = module->parameter_bytes,
        .activation_bytes = module->activation_bytes,
    };
    return me_api_fill(module_out, &whole, sizeof whole);
}

bool memest_report_device(const memest_report *report, int32_t rank,
                          memest_device *device_out)
{
    const me_rank_result *result = result_of(report, rank);
    if (result == NULL || !result->device.is_known) {
        return false;
    }
    const memest_device whole = {
        .context_bytes = result->device.context_bytes,
        .library_bytes = result->device.library_bytes,
        .communicator_bytes = result->device.communicator_bytes,
        .band_bytes = result->device.band_bytes,
    };
    return me_api_fill(device_out, &whole, sizeof whole);
}

bool memest_report_limit(const memest_report *report, int32_t rank,
                         memest_limit *limit_out)
{
    const me_rank_result *result = result_of(report, rank);
    if (result == NULL || !result->limit.is_known) {
        return false;
    }
    const me_limit_result *limit = &result->limit;
    memest_limit whole = {
        .is_oom = limit->oom,
        .num_alloc_retries = limit->num_alloc_retries,
        .reserved_bytes = limit->reserved_bytes,
    };
    if (limit->oom) {
        whole.iteration = limit->iteration;
        whole.phase = limit->phase;
        whole.module = limit->module;
        whole.op = limit->op;
        whole.message = limit->message;
        whole.tried_bytes = limit->tried_bytes;
    }
    return me_api_fill(limit_out, &whole, sizeof whole);
}

bool memest_report_verdict(const memest_report *report,
                           memest_verdict *verdict_out)
{
    const me_verdict *verdict = &report->report->verdict;
    const memest_verdict whole = {
        .risk = (memest_risk)verdict->risk,
        .fits = verdict->fits,
        .lets_go = me_verdict_lets_go(verdict),
        .capacity_bytes = verdict->capacity_bytes,
        .basis = me_basis_name(verdict->basis),
        .worst_bytes = verdict->worst_bytes,
        .band_bytes = verdict->band_bytes,
        .worst_rank = verdict->worst_rank,
        .oom_rank = verdict->oom_rank,
        .lower_bytes = verdict->lower_bytes,
        .higher_bytes = verdict->higher_bytes,
    };
    return me_api_fill(verdict_out, &whole, sizeof whole);
}

bool memest_report_step(const memest_report *report, memest_step *step_out)
{
    const me_report_time *time = &report->report->time;
    if (time->step == NULL) {
        return false;
    }
    const memest_step whole = {
        .seconds = 1e-9 * (double)time->step->step_ns,
        .tokens_per_second = time->tokens_per_second,
        .flops_utilisation = time->flops_utilisation,
        .uncertainty = time->uncertainty,
        .host_lacks = time->host_lacks,
    };
    return me_api_fill(step_out, &whole, sizeof whole);
}

static const me_flag_note *not_modelled(const memest_report *report,
                                        size_t index)
{
    const me_flag_list *list = &report->report->config->not_modelled;
    return index < (size_t)list->count ? &list->flags[index] : NULL;
}

const char *memest_report_not_modelled(const memest_report *report,
                                       size_t index)
{
    const me_flag_note *flag = not_modelled(report, index);
    return flag == NULL ? NULL : flag->flag;
}

const char *memest_report_not_modelled_note(const memest_report *report,
                                            size_t index)
{
    const me_flag_note *flag = not_modelled(report, index);
    return flag == NULL ? NULL : flag->note;
}

const char *memest_report_assumption(const memest_report *report, size_t index)
{
    return index < report->report->n_assumptions
               ? report->report->assumptions[index]
               : NULL;
}

memest_status memest_report_text(const memest_report *report,
                                 memest_format format, char **text_out,
                                 size_t *length_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_str text = {0};
    const me_status status =
        (unsigned)format > MEMEST_FORMAT_CHECK
            ? me_fail(diag, ME_ERR_CONFIG, "no such format of a report: %d",
                      (int)format)
            : me_report_append(report->report, (me_format)format, diag, &text);
    return me_api_text(me_alloc_check(lost, status, diag), &text, diag,
                       text_out, length_out);
}
