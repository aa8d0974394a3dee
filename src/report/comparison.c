/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/comparison.h"

#include "base/alloc.h"
#include "base/size.h"
#include "report/text.h"
#include "report/verdict.h"

#include <stdlib.h>
#include <string.h>

const me_step_time *me_compare_step(const me_compare_line *line)
{
    const me_compare_row *row = line->row;
    if (row->ticks_step != NULL) {
        return row->ticks_step;
    }
    return row->report == NULL ? NULL : row->report->time.step;
}

const char *me_compare_host_lacks(const me_compare_line *line)
{
    const me_compare_row *row = line->row;
    return row->ticks_step != NULL || row->report == NULL
               ? NULL
               : row->report->time.host_lacks;
}

bool me_compare_is_bound(const me_compare_line *line)
{
    return me_compare_step(line) != NULL && me_compare_host_lacks(line) != NULL;
}

uint64_t me_compare_host_bytes(const me_compare_line *line)
{
    const me_report *report = line->row->report;
    return report == NULL ? 0 : me_report_worst(report)->host.peak_bytes;
}

int64_t me_compare_exposed_ns(const me_step_time *step)
{
    int64_t most = 0;
    for (int32_t i = 0; i < step->n_stages; i++) {
        most = step->stages[i].exposed_ns > most ? step->stages[i].exposed_ns
                                                 : most;
    }
    return most;
}

int32_t me_compare_chunks(const me_compare_line *line)
{
    return line->row->report->config->parallel.virtual_pipeline;
}

/** A forward counts from its beginning to the end of the backward that lets
 *  go of it: the whole one, or the one of the weights. */
static int32_t count_in_flight(const me_rank_result *result)
{
    int32_t now = 0;
    int32_t most = 0;
    for (uint32_t i = 0; i < result->n_course; i++) {
        const char *name = result->course[i].name;
        if (strcmp(name, "F") == 0) {
            now++;
        } else if (strcmp(name, "B") == 0 || strcmp(name, "W") == 0) {
            now--;
        }
        most = now > most ? now : most;
    }
    return most;
}

static void raise_stage(me_compare_stage *stage, const me_compare_stage *by)
{
    stage->requested_bytes =
        me_max_u64(stage->requested_bytes, by->requested_bytes);
    stage->allocated_bytes =
        me_max_u64(stage->allocated_bytes, by->allocated_bytes);
    stage->reserved_bytes =
        me_max_u64(stage->reserved_bytes, by->reserved_bytes);
    stage->device_bytes = me_max_u64(stage->device_bytes, by->device_bytes);
    if (by->in_flight > stage->in_flight) {
        stage->in_flight = by->in_flight;
    }
}

static uint64_t worst_bytes(const me_report *report,
                            const me_rank_result *result)
{
    return me_result_most_bytes(result, report->verdict.basis);
}

static me_compare_stage read_rank(const me_report *report, int32_t rank)
{
    const me_rank_result *result = report->results[report->ranks[rank].result];
    const me_peak_result *peak = me_rank_result_peak(result);
    me_compare_stage stage = {.stage = report->ranks[rank].place.pp,
                              .rank = rank,
                              .in_flight = count_in_flight(result),
                              .result = result};
    if (peak != NULL) {
        stage.requested_bytes = peak->requested_bytes;
        stage.allocated_bytes = peak->allocated_bytes;
        stage.reserved_bytes = peak->reserved_bytes;
        stage.device_bytes = peak->device_bytes;
    }
    return stage;
}

/** Ranks with the same result as one before them on the stage say no more. */
static bool is_repeated(const me_report *report, int32_t rank)
{
    return rank > 0 &&
           report->ranks[rank].result == report->ranks[rank - 1].result &&
           report->ranks[rank].place.pp == report->ranks[rank - 1].place.pp;
}

static me_status fill_stages(const me_report *report, me_compare_line *line)
{
    line->n_stages = report->config->parallel.pipeline;
    line->stages = me_alloc((size_t)line->n_stages, sizeof *line->stages,
                            "compare.stages");
    if (line->stages == NULL) {
        line->n_stages = 0;
        return ME_ERR_NOMEM;
    }
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        if (is_repeated(report, rank)) {
            continue;
        }
        const me_compare_stage its = read_rank(report, rank);
        me_compare_stage *stage = &line->stages[its.stage];
        if (stage->result == NULL || worst_bytes(report, its.result) >
                                         worst_bytes(report, stage->result)) {
            stage->stage = its.stage;
            stage->rank = rank;
            stage->result = its.result;
        }
        raise_stage(stage, &its);
    }
    line->worst =
        (me_compare_stage){.stage = -1, .rank = report->verdict.worst_rank};
    for (int32_t i = 0; i < line->n_stages; i++) {
        raise_stage(&line->worst, &line->stages[i]);
    }
    return ME_OK;
}

/** What comes first in the table. */
typedef enum line_order {
    ORDER_FITS,
    ORDER_OPEN,
    ORDER_DOES_NOT_FIT,
    ORDER_CANNOT_RUN
} line_order;

static line_order order_of(const me_compare_line *line)
{
    return line->n_stages == 0 ? ORDER_CANNOT_RUN
           : line->is_open     ? ORDER_OPEN
           : line->fits        ? ORDER_FITS
                               : ORDER_DOES_NOT_FIT;
}

static int compare_lines(const void *a, const void *b)
{
    const me_compare_line *x = a;
    const me_compare_line *y = b;
    if (order_of(x) != order_of(y)) {
        return (int)order_of(x) - (int)order_of(y);
    }
    if (me_compare_is_bound(x) != me_compare_is_bound(y)) {
        return me_compare_is_bound(x) ? 1 : -1;
    }
    const me_step_time *s = me_compare_step(x);
    const me_step_time *t = me_compare_step(y);
    if (s != NULL && t != NULL && s->step_ns != t->step_ns) {
        return s->step_ns < t->step_ns ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

/** Fixed durations have no noise. */
static bool is_within_tie(const me_step_time *fastest, const me_compare_line *x)
{
    const me_step_time *step = me_compare_step(x);
    return x->row->ticks_step != NULL
               ? step->step_ns == fastest->step_ns
               : (double)step->step_ns <
                     (double)fastest->step_ns * (1.0 + ME_TIME_TIE);
}

/** Lines are sorted. */
static void give_places(me_compare_line *lines, size_t n_lines)
{
    const me_step_time *fastest = NULL;
    int32_t place = 0;
    for (size_t i = 0; i < n_lines; i++) {
        const me_step_time *step = me_compare_step(&lines[i]);
        if (step == NULL || me_compare_is_bound(&lines[i]) ||
            order_of(&lines[i]) != ORDER_FITS) {
            continue;
        }
        const bool is_tie =
            fastest != NULL && is_within_tie(fastest, &lines[i]);
        if (is_tie) {
            lines[i].is_tie = true;
            lines[i - 1].is_tie = true;
        } else {
            fastest = step;
            place++;
        }
        lines[i].place = place;
    }
}

/** A setting with a part of any size left out has no place, and neither has one
 *  of which that decides whether it fits; one that does not fit whatever is
 *  left out is said not to. */
static bool is_open(const me_report *report)
{
    return report->verdict.risk == ME_RISK_CANNOT_SAY ||
           (report->verdict.risk != ME_RISK_DOES_NOT_FIT &&
            me_verdict_leaves_out_much(report->config));
}

me_status me_compare_lines_create(const me_comparison *comparison,
                                  me_diag *diag, me_compare_line **lines_out)
{
    const size_t n = comparison->n_rows;
    me_compare_line *lines = me_alloc(n, sizeof *lines, "compare.lines");
    me_status status = lines == NULL ? ME_ERR_NOMEM : ME_OK;
    for (size_t i = 0; i < n && status == ME_OK; i++) {
        const me_report *report = comparison->rows[i].report;
        lines[i].row = &comparison->rows[i];
        if (report != NULL) {
            lines[i].fits =
                report->verdict.risk == ME_RISK_UNKNOWN || report->verdict.fits;
            lines[i].is_open = is_open(report);
            status = fill_stages(report, &lines[i]);
        }
    }
    if (status != ME_OK) {
        me_compare_lines_destroy(lines, n);
        return me_fail(diag, status, "no host memory for the comparison");
    }
    qsort(lines, n, sizeof *lines, compare_lines);
    give_places(lines, n);
    *lines_out = lines;
    return ME_OK;
}

void me_compare_lines_destroy(me_compare_line *lines, size_t n_lines)
{
    for (size_t i = 0; lines != NULL && i < n_lines; i++) {
        me_free(lines[i].stages);
    }
    me_free(lines);
}
