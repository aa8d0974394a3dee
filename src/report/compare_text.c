/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/compare_format.h"
#include "report/text.h"
#include "report/units.h"

/** A stage of a line. */
typedef struct stage_row {
    const me_compare_line *line;
    const me_compare_stage *stage;
} stage_row;

void me_compare_title(const me_compare_row *row, me_str *text)
{
    me_str_append(text, row->schedule);
    if (row->variant[0] != '\0') {
        me_str_printf(text, ", %s", row->variant);
    }
}

static const me_compare_line *line_of(const void *row)
{
    return row;
}

static void append_ms(me_str *cell, int64_t ns)
{
    me_str_printf(cell, "%.1f", (double)ns * 1e-6);
}

static void get_place(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (line->place > 0) {
        me_str_printf(cell, "%d%s", (int)line->place, line->is_tie ? "=" : "");
    }
}

static void get_schedule(const void *row, me_str *cell)
{
    me_str_append(cell, line_of(row)->row->schedule);
}

static void get_variant(const void *row, me_str *cell)
{
    me_str_append(cell, line_of(row)->row->variant);
}

static void get_step(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    if (step == NULL) {
        me_str_append(cell, "-");
    } else {
        me_str_append(cell,
                      me_compare_host_lacks(line_of(row)) != NULL ? ">=" : "");
        append_ms(cell, step->step_ns);
    }
}

static void get_tokens(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (me_compare_step(line) == NULL ||
        !(line->row->report->time.tokens_per_second > 0)) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%s%.0f",
                      me_compare_host_lacks(line) != NULL ? "<=" : "",
                      line->row->report->time.tokens_per_second);
    }
}

static void get_bubble(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    if (step == NULL) {
        me_str_append(cell, "-");
    } else {
        me_percent_append(cell, (uint64_t)step->bubble_ns,
                          (uint64_t)step->forward_backward_ns);
    }
}

static void get_exposed(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    if (step == NULL) {
        me_str_append(cell, "-");
    } else {
        append_ms(cell, me_compare_exposed_ns(step));
    }
}

static void append_ticks(me_str *cell, const me_step_time *step, int64_t ns)
{
    if (step == NULL) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%.2f", (double)ns / (double)ME_COMPARE_TICK_NS);
    }
}

static void get_step_ticks(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    append_ticks(cell, step, step == NULL ? 0 : step->step_ns);
}

static void get_bubble_ticks(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    append_ticks(cell, step, step == NULL ? 0 : step->bubble_ns);
}

static void get_span_bubble_ticks(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    append_ticks(cell, step, step == NULL ? 0 : step->span_bubble_ns);
}

/** Micro-batches of a whole rank: chunk micro-batches over its chunks. */
static void append_in_flight(me_str *cell, int32_t in_flight, int32_t chunks)
{
    const int32_t hundredths =
        (int32_t)(((int64_t)in_flight * 100 + chunks / 2) / chunks);
    me_str_printf(cell, "%d", (int)(hundredths / 100));
    if (hundredths % 100 != 0) {
        me_str_printf(cell, ".%02d", (int)(hundredths % 100));
    }
}

static void get_in_flight(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (line->n_stages == 0) {
        me_str_append(cell, "-");
    } else {
        append_in_flight(cell, line->worst.in_flight, me_compare_chunks(line));
    }
}

#define BYTES_COLUMN(name, field)                                              \
    static void get_##name(const void *row, me_str *cell)                      \
    {                                                                          \
        const me_compare_line *line = line_of(row);                            \
        me_gib_append(cell, line->n_stages == 0 ? ME_BYTES_UNKNOWN             \
                                                : line->worst.field);          \
    }                                                                          \
    static void get_stage_##name(const void *row, me_str *cell)                \
    {                                                                          \
        me_gib_append(cell, ((const stage_row *)row)->stage->field);           \
    }

BYTES_COLUMN(requested, requested_bytes)
BYTES_COLUMN(allocated, allocated_bytes)
BYTES_COLUMN(reserved, reserved_bytes)
BYTES_COLUMN(device, device_bytes)

static void get_worst(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (line->n_stages == 0) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%d", (int)line->worst.rank);
    }
}

static void get_verdict(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    me_str_append(cell, line->n_stages == 0
                            ? "cannot run"
                            : me_risk_name(line->row->report->verdict.risk));
}

static const me_column line_columns[] = {
    {"place", NULL, true, false, get_place},
    {"schedule", NULL, false, false, get_schedule},
    {"variant", NULL, false, false, get_variant},
    {"step", "ms", true, false, get_step},
    {"tokens/s", NULL, true, false, get_tokens},
    {"bubble", NULL, true, false, get_bubble},
    {"exposed comm", "ms", true, false, get_exposed},
    {"in flight", NULL, true, false, get_in_flight},
    {"requested", NULL, true, false, get_requested},
    {"allocated", NULL, true, false, get_allocated},
    {"reserved", NULL, true, false, get_reserved},
    {"device", NULL, true, false, get_device},
    {"worst rank", NULL, true, false, get_worst},
    {"verdict", NULL, false, false, get_verdict},
};

/** With fixed durations. */
static const me_column tick_columns[] = {
    {"place", NULL, true, false, get_place},
    {"schedule", NULL, false, false, get_schedule},
    {"variant", NULL, false, false, get_variant},
    {"step", "ticks", true, false, get_step_ticks},
    {"bubble", "ticks", true, false, get_bubble_ticks},
    {"bubble", NULL, true, false, get_bubble},
    {"span bubble", "ticks", true, false, get_span_bubble_ticks},
    {"in flight", NULL, true, false, get_in_flight},
    {"requested", NULL, true, false, get_requested},
    {"allocated", NULL, true, false, get_allocated},
    {"reserved", NULL, true, false, get_reserved},
    {"device", NULL, true, false, get_device},
    {"worst rank", NULL, true, false, get_worst},
    {"verdict", NULL, false, false, get_verdict},
};

me_status me_compare_lines_table(const me_compare_print *print,
                                 me_table_printer printer, me_str *text)
{
    const bool has_ticks = print->comparison->durations != NULL;
    return printer(
        &(me_table){.columns = has_ticks ? tick_columns : line_columns,
                    .n_columns =
                        has_ticks ? sizeof tick_columns / sizeof *tick_columns
                                  : sizeof line_columns / sizeof *line_columns,
                    .rows = print->lines,
                    .n_rows = print->comparison->n_rows,
                    .row_bytes = sizeof *print->lines},
        text);
}

static bool is_first(const stage_row *row)
{
    return row->stage == row->line->stages;
}

static void get_stage_schedule(const void *row, me_str *cell)
{
    const stage_row *r = row;
    me_str_append(cell, is_first(r) ? r->line->row->schedule : "");
}

static void get_stage_variant(const void *row, me_str *cell)
{
    const stage_row *r = row;
    me_str_append(cell, is_first(r) ? r->line->row->variant : "");
}

static void get_stage(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)((const stage_row *)row)->stage->stage);
}

static void get_stage_rank(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)((const stage_row *)row)->stage->rank);
}

static void get_stage_in_flight(const void *row, me_str *cell)
{
    const stage_row *r = row;
    append_in_flight(cell, r->stage->in_flight, me_compare_chunks(r->line));
}

static const me_column stage_columns[] = {
    {"schedule", NULL, false, false, get_stage_schedule},
    {"variant", NULL, false, false, get_stage_variant},
    {"stage", NULL, true, false, get_stage},
    {"worst rank", NULL, true, false, get_stage_rank},
    {"in flight", NULL, true, false, get_stage_in_flight},
    {"requested", NULL, true, false, get_stage_requested},
    {"allocated", NULL, true, false, get_stage_allocated},
    {"reserved", NULL, true, false, get_stage_reserved},
    {"device", NULL, true, false, get_stage_device},
};

me_status me_compare_stages_table(const me_compare_print *print,
                                  me_table_printer printer, me_str *text)
{
    size_t n_rows = 0;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        n_rows += (size_t)print->lines[i].n_stages;
    }
    stage_row *rows = me_alloc(n_rows, sizeof *rows, "compare.stage_rows");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    n_rows = 0;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_compare_line *line = &print->lines[i];
        for (int32_t stage = 0; stage < line->n_stages; stage++) {
            rows[n_rows++] =
                (stage_row){.line = line, .stage = &line->stages[stage]};
        }
    }
    const me_status status = printer(
        &(me_table){.columns = stage_columns,
                    .n_columns = sizeof stage_columns / sizeof *stage_columns,
                    .rows = rows,
                    .n_rows = n_rows,
                    .row_bytes = sizeof *rows},
        text);
    me_free(rows);
    return status;
}

static bool has_time(const me_compare_print *print)
{
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        if (me_compare_step(&print->lines[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/** Why there are no times: of the first setting that says so. */
static const char *reason_against_time(const me_compare_print *print)
{
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_report *report = print->lines[i].row->report;
        if (report != NULL && report->time.reason[0] != '\0') {
            return report->time.reason;
        }
    }
    return "the card has no rates";
}

/** Of the first setting whose step is a lower bound; NULL: none is. */
static const char *missing_of_host(const me_compare_print *print)
{
    const char *missing = NULL;
    for (size_t i = 0; i < print->comparison->n_rows && missing == NULL; i++) {
        missing = me_compare_host_lacks(&print->lines[i]);
    }
    return missing;
}

static void explain_prediction(const me_compare_print *print, me_str *text)
{
    me_str_printf(text,
                  " What fits comes first, by predicted step time; times "
                  "less than %.0f %% above the fastest of a place share "
                  "it (=), since the prediction is no better.",
                  100 * ME_TIME_TIE);
    const char *missing = missing_of_host(print);
    if (missing != NULL) {
        me_str_printf(text,
                      " >= is a lower bound: the host's time for %s is not in "
                      "it, and may change the order.",
                      missing);
    }
}

static void explain_durations(const me_ticks *t, me_str *text)
{
    me_str_printf(text,
                  " Durations are fixed, in ticks: F=%lld, I=%lld, W=%lld, "
                  "B=%lld, comm=%lld",
                  (long long)t->forward, (long long)t->input_gradient,
                  (long long)t->weight_gradient,
                  (long long)me_ticks_backward(t), (long long)t->transfer);
    if (t->overlapped > 0) {
        me_str_printf(text, ", FB=%lld", (long long)t->overlapped);
    }
    me_str_append(
        text,
        ", of a rank's whole share of the layers (one of c chunks takes a "
        "c-th); nothing else is in the step. bubble is the step less the "
        "busiest stage, span bubble the largest idle within a stage's own "
        "span. What fits comes first, by step; equal steps share a place (=).");
}

void me_compare_explain(const me_compare_print *print, me_str *text)
{
    me_str_append(text, "Bytes are the most of any rank in iteration 1, in "
                        "GiB; in flight are micro-batches of a whole rank.");
    if (print->comparison->durations != NULL) {
        explain_durations(print->comparison->durations, text);
    } else if (has_time(print)) {
        explain_prediction(print, text);
    } else {
        me_str_printf(text,
                      " Step times are not predicted: %s. What fits comes "
                      "first.",
                      reason_against_time(print));
    }
    me_str_append(text, "\n");
}

static void append_reasons(const me_compare_print *print, me_str *text)
{
    bool is_first_one = true;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_compare_row *row = print->lines[i].row;
        if (row->reason == NULL) {
            continue;
        }
        me_str_append(text, is_first_one ? "\nCannot run\n" : "");
        is_first_one = false;
        me_str_append(text, "  ");
        me_compare_title(row, text);
        me_str_printf(text, ": %s\n", row->reason);
    }
}

/** What the variants are. */
static void append_variants(const me_compare_print *print, me_str *text)
{
    const char *last = "";
    const me_comparison *c = print->comparison;
    bool is_first_one = true;
    for (size_t i = 0; i < c->n_rows; i++) {
        const me_compare_row *row = &c->rows[i];
        if (row->variant[0] != '\0' && row->variant != last) {
            me_str_append(text, is_first_one ? "\nVariants\n" : "");
            me_str_printf(text, "  %s: %s\n", row->variant, row->assignments);
            is_first_one = false;
            last = row->variant;
        }
    }
}

me_status me_compare_text(const me_compare_print *print, me_str *text)
{
    const me_comparison *c = print->comparison;
    me_str_printf(text, "memest %s compare%s%s\n\n", c->version,
                  c->name[0] == '\0' ? "" : ": ", c->name);
    me_status status = me_compare_lines_table(print, me_table_print, text);
    me_str_append(text, "\n  ");
    me_compare_explain(print, text);
    append_variants(print, text);
    append_reasons(print, text);
    me_str_append(text, "\nStages\n");
    if (status == ME_OK) {
        status = me_compare_stages_table(print, me_table_print, text);
    }
    return status == ME_OK ? me_str_status(text) : status;
}
