/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "run/compare_run.h"

struct memest_comparison {
    me_transport *transport;
    me_compare_run *run;
    me_compare_line *lines; /**< in the order of the table; owned */
    memest_report *reports; /**< of the lines, borrowed from the run; owned */
};

static const me_comparison *rows_of(const memest_comparison *c)
{
    return me_compare_run_comparison(c->run);
}

static me_status simulate(memest_comparison *c, const memest_job *job,
                          const memest_compare_options *asked, me_diag *diag)
{
    const me_compare_request request = {
        .schedules = asked->schedules,
        .n_schedules = asked->n_schedules,
        .variants = asked->variants,
        .n_variants = asked->n_variants,
        .durations = asked->durations,
        .strict = asked->strict,
        .no_fold = asked->no_fold,
        .threads = asked->threads,
    };
    me_status status = me_transport_local_create(&c->transport);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory to compare");
    }
    status = me_compare_run_create(c->transport, &request, diag, &c->run);
    return status == ME_OK ? me_compare_run_all(c->run, job->config, diag)
                           : status;
}

static me_status sort_lines(memest_comparison *c, me_diag *diag)
{
    const size_t n = rows_of(c)->n_rows;
    const me_status status =
        me_compare_lines_create(rows_of(c), diag, &c->lines);
    if (status != ME_OK) {
        return status;
    }
    c->reports = me_alloc(n, sizeof *c->reports, "api.comparison");
    if (c->reports == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to compare");
    }
    for (size_t i = 0; i < n; i++) {
        c->reports[i].report = c->lines[i].row->report;
    }
    return ME_OK;
}

memest_status memest_compare(const memest_job *job,
                             const memest_compare_options *options,
                             memest_comparison **comparison_out,
                             memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    memest_compare_options asked;
    if (!me_api_read(options, &asked, sizeof asked)) {
        return me_api_status(
            me_fail(diag, ME_ERR_CONFIG,
                    "struct_size of the options is too small: begin with "
                    "MEMEST_INIT(memest_compare_options)"));
    }
    memest_comparison *c = me_alloc(1, sizeof *c, "api.comparison");
    if (c == NULL) {
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory to compare"));
    }
    me_status status = simulate(c, job, &asked, diag);
    if (status == ME_OK) {
        status = sort_lines(c, diag);
    }
    status = me_alloc_check(lost, status, diag);
    if (status != ME_OK) {
        memest_comparison_destroy(c);
        return me_api_status(status);
    }
    *comparison_out = c;
    return MEMEST_OK;
}

void memest_comparison_destroy(memest_comparison *comparison)
{
    memest_comparison *c = comparison;
    if (c == NULL) {
        return;
    }
    if (c->lines != NULL) {
        me_compare_lines_destroy(c->lines, rows_of(c)->n_rows);
    }
    me_free(c->reports);
    me_compare_run_destroy(c->run);
    me_transport_destroy(c->transport);
    me_free(c);
}

size_t memest_comparison_n_rows(const memest_comparison *comparison)
{
    return rows_of(comparison)->n_rows;
}

static const me_compare_line *line_at(const memest_comparison *c, size_t index)
{
    return index < rows_of(c)->n_rows ? &c->lines[index] : NULL;
}

/** In the unit of the step: seconds, or ticks. */
static double in_unit(const me_compare_line *line, int64_t ns)
{
    return line->row->ticks_step != NULL
               ? (double)ns / (double)ME_COMPARE_TICK_NS
               : 1e-9 * (double)ns;
}

static void fill_step(const me_compare_line *line, memest_compare_row *row)
{
    const me_step_time *step = me_compare_step(line);
    if (step == NULL) {
        return;
    }
    row->has_step = true;
    row->step = in_unit(line, step->step_ns);
    row->host_lacks = me_compare_host_lacks(line);
    row->forward_backward = in_unit(line, step->forward_backward_ns);
    row->bubble = in_unit(line, step->bubble_ns);
    row->span_bubble = in_unit(line, step->span_bubble_ns);
    if (line->row->ticks_step == NULL) {
        row->exposed_communication = in_unit(line, me_compare_exposed_ns(step));
        row->tokens_per_second = line->row->report->time.tokens_per_second;
    }
}

bool memest_comparison_row(const memest_comparison *comparison, size_t index,
                           memest_compare_row *row_out)
{
    const me_compare_line *line = line_at(comparison, index);
    if (line == NULL) {
        return false;
    }
    memest_compare_row whole = {
        .schedule = line->row->schedule,
        .variant = line->row->variant,
        .assignments = line->row->assignments,
        .reason = line->row->reason,
    };
    if (line->n_stages > 0) {
        whole.place = line->place;
        whole.is_tie = line->is_tie;
        whole.fits = line->fits;
        whole.risk = (memest_risk)line->row->report->verdict.risk;
        whole.worst_rank = line->worst.rank;
        whole.requested_bytes = line->worst.requested_bytes;
        whole.allocated_bytes = line->worst.allocated_bytes;
        whole.reserved_bytes = line->worst.reserved_bytes;
        whole.device_bytes = line->worst.device_bytes;
        whole.chunks = me_compare_chunks(line);
        whole.in_flight = line->worst.in_flight;
        whole.n_stages = line->n_stages;
        fill_step(line, &whole);
    }
    return me_api_fill(row_out, &whole, sizeof whole);
}

bool memest_comparison_stage(const memest_comparison *comparison, size_t row,
                             int32_t stage, memest_compare_stage *stage_out)
{
    const me_compare_line *line = line_at(comparison, row);
    if (line == NULL || stage < 0 || stage >= line->n_stages) {
        return false;
    }
    const me_compare_stage *s = &line->stages[stage];
    const memest_compare_stage whole = {
        .stage = s->stage,
        .worst_rank = s->rank,
        .in_flight = s->in_flight,
        .requested_bytes = s->requested_bytes,
        .allocated_bytes = s->allocated_bytes,
        .reserved_bytes = s->reserved_bytes,
        .device_bytes = s->device_bytes,
    };
    return me_api_fill(stage_out, &whole, sizeof whole);
}

const memest_report *
memest_comparison_report(const memest_comparison *comparison, size_t row)
{
    const me_compare_line *line = line_at(comparison, row);
    return line == NULL || line->row->report == NULL
               ? NULL
               : &comparison->reports[row];
}

static me_status check_format(const me_comparison *c, memest_format format,
                              me_diag *diag)
{
    static const char *const names[] = {
        [MEMEST_FORMAT_TEXT] = "text",
        [MEMEST_FORMAT_JSON] = "json",
        [MEMEST_FORMAT_CSV] = "csv",
        [MEMEST_FORMAT_HTML] = "html",
    };
    me_format known = ME_FORMAT_TEXT;
    if ((unsigned)format >= sizeof names / sizeof names[0] ||
        (format == MEMEST_FORMAT_CSV && c->durations != NULL)) {
        return me_fail(
            diag, ME_ERR_CONFIG, "a comparison%s is not written in format %d",
            c->durations == NULL ? "" : " by fixed durations", (int)format);
    }
    return me_format_read(names[format], NULL, diag, &known);
}

memest_status memest_comparison_text(const memest_comparison *comparison,
                                     memest_format format, bool keep_course,
                                     char **text_out, size_t *length_out,
                                     memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_str text = {0};
    me_status status = check_format(rows_of(comparison), format, diag);
    if (status == ME_OK) {
        status = me_compare_append(rows_of(comparison), (me_format)format,
                                   keep_course, diag, &text);
    }
    return me_api_text(me_alloc_check(lost, status, diag), &text, diag,
                       text_out, length_out);
}
