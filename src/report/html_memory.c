/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory over time by category, of a rank that the reader picks. */
#include "base/alloc.h"
#include "base/size.h"
#include "report/compare_timeline.h"
#include "report/html_charts.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ROWS_MAX = 20000, /* parts of all ranks, beyond which no rank is added */
    RANKS_MAX = 64,
    TENSORS_IN_HINT = 8,
    TENSORS_SHOWN = 40,
    RANK_TEXT = 96,
    HEAT_CELLS_LEAST = 8,
    HEAT_CELLS_MAX = 16384
};

static const char columns[] =
    "\"row\",\"x\",\"x2\",\"name\",\"chunk\",\"microbatch\",\"peak\",\"held\","
    "\"reserved\",\"tensors\""
#define CATEGORY_COLUMN(constant, name) ",\"" name "\""
    ME_CATEGORY_LIST(CATEGORY_COLUMN)
#undef CATEGORY_COLUMN
    ;

/** The chart, growing. */
typedef struct memory {
    const me_report *report;
    me_compare_line *line; /**< of the job; NULL: without times */
    me_chart_rows rows;
    int32_t ranks[RANKS_MAX]; /**< that can be picked */
    int32_t n_ranks;
    bool is_timed; /**< else parts follow each other with the same width */
} memory;

static const me_rank_result *result_of(const me_report *report, int32_t rank)
{
    return report->results[report->ranks[rank].result];
}

static void name_rank(const me_report *report, int32_t rank,
                      char name[RANK_TEXT])
{
    const me_rank_place *p = &report->ranks[rank].place;
    (void)snprintf(name, RANK_TEXT, "rank %d (stage %d, tensor %d, data %d)",
                   (int)rank, (int)p->pp, (int)p->tp, (int)p->dp);
}

/** What most of a peak is of, a line each. */
static void append_tensors(const me_peak_result *peak, me_str *text)
{
    me_gib_append(text, peak->requested_bytes);
    me_str_append(text, " GiB");
    me_text_instant(peak, text);
    for (uint32_t i = 0; i < peak->n_contributors && i < TENSORS_IN_HINT; i++) {
        const me_contributor *c = &peak->contributors[i];
        me_str_append(text, "\n");
        me_gib_append(text, c->bytes);
        me_str_printf(
            text, "  %s  %s  %s", me_category_name((me_category)c->category),
            *c->module == '\0' ? "-" : c->module, c->op == NULL ? "-" : c->op);
    }
}

/** A part from when to when; its tensors where it has the rank's peak. */
static void add_row(memory *m, int32_t rank, const me_course_part *part,
                    int64_t from, int64_t to, const char *tensors)
{
    char name[RANK_TEXT];
    me_chart_rows *rows = &m->rows;
    name_rank(m->report, rank, name);
    me_chart_row_begin(rows);
    me_chart_text(rows, name);
    me_chart_integer(rows, from);
    me_chart_integer(rows, to);
    me_chart_text(rows, part->name);
    me_chart_integer(rows, part->chunk);
    me_chart_integer(rows, part->microbatch);
    me_chart_number(rows, part->requested.peak);
    me_chart_number(rows, part->requested.end);
    me_chart_number(rows, part->reserved.peak);
    me_chart_text(rows, tensors);
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        me_chart_number(rows, part->end_by_category[i]);
    }
    me_chart_row_end(rows);
}

/** Before its first action a rank has what the iteration before left it. */
static void add_beginning(memory *m, int32_t rank, const me_timed_part *first)
{
    const me_rank_result *result = result_of(m->report, rank);
    const me_course_part *part = &result->course[0];
    me_course_part wait = {
        .name = "wait",
        .chunk = -1,
        .microbatch = ME_NO_MICROBATCH,
        .requested = {.peak = part->requested.begin,
                      .end = part->requested.begin},
        .reserved = {.peak = part->reserved.begin},
    };
    memcpy(wait.end_by_category, result->course_begin_by_category,
           sizeof wait.end_by_category);
    if (first->start_ns > 0) {
        add_row(m, rank, &wait, 0, first->start_ns / 1000, "");
    }
}

/** Microseconds, so that numbers stay short; between parts a rank waits, and
 *  keeps what it has. */
static void add_timed(memory *m, int32_t rank, const me_timed_course *course,
                      uint64_t peak_bytes, const char *tensors)
{
    bool has_peak = false;
    add_beginning(m, rank, &course->parts[0]);
    for (uint32_t i = 0; i < course->n_parts; i++) {
        const me_timed_part *timed = &course->parts[i];
        const int64_t before = i == 0 ? 0 : course->parts[i - 1].end_ns / 1000;
        if (i > 0 && before < timed->start_ns / 1000) {
            me_course_part wait = *course->parts[i - 1].part;
            wait.name = "wait";
            wait.requested.peak = wait.requested.end;
            wait.reserved.peak = wait.reserved.end;
            add_row(m, rank, &wait, before, timed->start_ns / 1000, "");
        }
        const bool is_peak =
            !has_peak && timed->part->requested.peak == peak_bytes;
        has_peak = has_peak || is_peak;
        add_row(m, rank, timed->part, timed->start_ns / 1000,
                timed->end_ns / 1000, is_peak ? tensors : "");
    }
}

static void add_in_order(memory *m, int32_t rank, const me_rank_result *result,
                         uint64_t peak_bytes, const char *tensors)
{
    for (uint32_t i = 0; i < result->n_course; i++) {
        const me_course_part *part = &result->course[i];
        add_row(m, rank, part, i, (int64_t)i + 1,
                part->requested.peak == peak_bytes ? tensors : "");
    }
}

static me_status add_rank(memory *m, int32_t rank)
{
    const me_rank_result *result = result_of(m->report, rank);
    const me_peak_result *peak = me_rank_result_peak(result);
    const int32_t stage = m->report->ranks[rank].place.pp;
    if (peak == NULL || result->n_course == 0 || m->n_ranks == RANKS_MAX) {
        return ME_OK;
    }
    me_str tensors = {0};
    append_tensors(peak, &tensors);
    me_timed_course course = {.n_parts = 0};
    me_status status = me_str_status(&tensors);
    if (status == ME_OK && m->is_timed && m->line != NULL) {
        m->line->stages[stage].result = result;
        status = me_timed_course_init(m->line, stage, &course);
    }
    if (status == ME_OK && course.n_parts > 0) {
        add_timed(m, rank, &course, peak->requested_bytes,
                  me_str_text(&tensors));
        m->ranks[m->n_ranks++] = rank;
    } else if (status == ME_OK && !m->is_timed) {
        add_in_order(m, rank, result, peak->requested_bytes,
                     me_str_text(&tensors));
        m->ranks[m->n_ranks++] = rank;
    }
    me_timed_course_fini(&course);
    me_str_fini(&tensors);
    return status;
}

/** The worst of each stage, the job's first; then the first of all other
 *  results, while there is room. */
static me_status add_ranks(memory *m)
{
    const me_report *report = m->report;
    me_status status = add_rank(m, report->verdict.worst_rank);
    bool *is_there =
        me_alloc(report->n_results, sizeof *is_there, "html.ranks");
    if (is_there == NULL) {
        return ME_ERR_NOMEM;
    }
    is_there[report->ranks[report->verdict.worst_rank].result] = true;
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int32_t rank = 0; rank < report->world_size && status == ME_OK &&
                               m->rows.count < ROWS_MAX;
             rank++) {
            const me_report_rank *its = &report->ranks[rank];
            const bool is_worst =
                m->line == NULL || m->line->stages[its->place.pp].rank == rank;
            if (!is_there[its->result] && (pass == 1 || is_worst)) {
                is_there[its->result] = true;
                status = add_rank(m, rank);
            }
        }
    }
    me_free(is_there);
    return status;
}

/** What is drawn, in words. */
static void append_note(const memory *m, me_str *page)
{
    me_str note = {0};
    me_str_append(
        &note, "Colours: what is requested when an action has ended, by "
               "category; grey: the most while it ran; the line: what the "
               "allocator has reserved; the triangle: the rank's peak, with "
               "its largest tensors. Above: forwards (F) and backwards (B; I "
               "and W its halves) of micro-batches, and the rest of the "
               "step.");
    if (!m->is_timed) {
        me_str_append(&note, " Times are not predicted: one step is an action "
                             "in the rank's order, not to scale.");
    }
    if (m->rows.count >= ROWS_MAX || m->n_ranks == RANKS_MAX) {
        me_str_append(&note, " Not every rank is here: there are too many.");
    }
    me_page_note(page, me_str_text(&note));
    me_str_fini_piece(&note, page);
}

static me_status append_chart(memory *m, me_str *page)
{
    char first[RANK_TEXT];
    name_rank(m->report, m->report->verdict.worst_rank, first);
    return me_page_chart(
        page,
        &(me_chart){
            .spec = "memory",
            .data = "parts",
            .columns = columns,
            .rows = &m->rows,
            .choice = {.column = "row", .label = "Memory of", .first = first},
            .signals = json_pack(
                "{s:s, s:i, s:s}", "x_title",
                m->is_timed ? "ms of the step" : "step of the rank's order",
                "x_scale", m->is_timed ? 1000 : 1, "row", first)});
}

/** Of each rank that can be picked, the tensors at its peak. */
static me_status append_tables(const memory *m, me_str *page)
{
    me_status status = ME_OK;
    for (int32_t i = 0; i < m->n_ranks && status == ME_OK; i++) {
        const int32_t rank = m->ranks[i];
        char name[RANK_TEXT];
        name_rank(m->report, rank, name);
        me_page_part_begin(page, name, i == 0);
        status = me_contributors_table(
            me_rank_result_peak(result_of(m->report, rank)), TENSORS_SHOWN,
            me_page_table, page);
        me_page_part_end(page);
    }
    return status;
}

static me_status append_memory(memory *m, me_str *page)
{
    me_status status = add_ranks(m);
    if (status == ME_OK && m->n_ranks == 0 && m->is_timed) {
        m->is_timed = false; // the times are of another order
        status = add_ranks(m);
    }
    if (status == ME_OK) {
        append_note(m, page);
        status = append_chart(m, page);
    }
    if (status == ME_OK) {
        me_page_heading(page, "What the rank has at its peak");
        status = append_tables(m, page);
    }
    return status;
}

me_status me_html_memory(const me_report *report, me_str *page)
{
    const me_compare_row row = {
        .schedule = "", .variant = "", .assignments = "", .report = report};
    const me_comparison one = {.version = report->version,
                               .name = report->config->name,
                               .rows = &row,
                               .n_rows = 1};
    memory m = {.report = report, .is_timed = report->time.step != NULL};
    me_status status = me_compare_lines_create(&one, NULL, &m.line);
    if (status == ME_OK) {
        status = append_memory(&m, page);
    }
    me_compare_lines_destroy(m.line, 1);
    me_chart_rows_fini(&m.rows);
    return status;
}

/** A stage's tensor rank, of all its ranks. */
typedef struct heat_cell {
    uint64_t most;
    uint64_t least;
    int32_t rank;
} heat_cell;

static void fill_cells(const me_report *report, heat_cell *cells)
{
    const int32_t tensor = report->config->parallel.tensor;
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        const me_rank_place *p = &report->ranks[rank].place;
        const uint64_t bytes = me_result_most_bytes(result_of(report, rank),
                                                    report->verdict.basis);
        heat_cell *cell = &cells[p->pp * tensor + p->tp];
        if (cell->most == 0 || bytes > cell->most) {
            cell->most = bytes;
            cell->rank = rank;
        }
        cell->least =
            cell->least == 0 || bytes < cell->least ? bytes : cell->least;
    }
}

me_status me_html_heat(const me_report *report, me_str *page)
{
    const me_parallel_config *p = &report->config->parallel;
    const int64_t n = (int64_t)p->pipeline * p->tensor;
    if (p->pipeline < 2 || p->tensor < 2 || n < HEAT_CELLS_LEAST ||
        n > HEAT_CELLS_MAX) {
        return ME_OK;
    }
    heat_cell *cells = me_alloc((size_t)n, sizeof *cells, "html.heat");
    if (cells == NULL) {
        return ME_ERR_NOMEM;
    }
    me_chart_rows rows = {.count = 0};
    fill_cells(report, cells);
    for (int32_t i = 0; i < (int32_t)n; i++) {
        me_chart_row_begin(&rows);
        me_chart_integer(&rows, i / p->tensor);
        me_chart_integer(&rows, i % p->tensor);
        me_chart_integer(&rows, cells[i].rank);
        me_chart_number(&rows, cells[i].most);
        me_chart_number(&rows, cells[i].least);
        me_chart_row_end(&rows);
    }
    me_free(cells);
    me_page_heading(page, "Stages and tensor ranks");
    const me_status status = me_page_chart(
        page,
        &(me_chart){
            .spec = "heat",
            .data = "cells",
            .columns = "\"stage\",\"tensor\",\"rank\",\"bytes\",\"least\"",
            .rows = &rows,
            .signals = json_pack("{s:i, s:s}", "rows", (int)p->pipeline, "kind",
                                 me_basis_name(report->verdict.basis))});
    me_chart_rows_fini(&rows);
    return status;
}
