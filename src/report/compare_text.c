/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/compare_format.h"
#include "report/confidence.h"
#include "report/quantity.h"
#include "report/text.h"

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

/** "-" without a step. */
static void append_ms(me_str *cell, const me_step_time *step, int64_t ns)
{
    if (step == NULL) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%.1f", (double)ns * 1e-6);
    }
}

static void get_place(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (line->place > 0) {
        me_str_printf(cell, "%d%s", (int)line->place, line->is_tie ? "=" : "");
    } else if (line->is_open) {
        me_str_append(cell, "?");
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
    me_str_append(cell, me_compare_is_bound(line_of(row)) ? ">=" : "");
    append_ms(cell, step, step == NULL ? 0 : step->step_ns);
}

static void get_tokens(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (me_compare_step(line) == NULL ||
        !(line->row->report->time.tokens_per_second > 0)) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%s%.0f", me_compare_is_bound(line) ? "<=" : "",
                      line->row->report->time.tokens_per_second);
    }
}

static void get_bubble(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    me_percent_append(cell, step == NULL ? 0 : (uint64_t)step->bubble_ns,
                      step == NULL ? 0 : (uint64_t)step->forward_backward_ns);
}

static void get_exposed(const void *row, me_str *cell)
{
    const me_step_time *step = me_compare_step(line_of(row));
    append_ms(cell, step, step == NULL ? 0 : me_compare_exposed_ns(step));
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

static void get_verdict(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    me_str_append(cell, line->n_stages == 0
                            ? "cannot run"
                            : me_risk_phrase(line->row->report->verdict.risk));
}

static void get_confidence(const void *row, me_str *cell)
{
    const me_compare_line *line = line_of(row);
    if (line->n_stages == 0) {
        me_str_append(cell, "-");
        return;
    }
    const me_confidence confidence = me_confidence_of(line->row->report);
    me_str_append(cell, me_confidence_word(confidence.level));
}

static void get_host(const void *row, me_str *cell)
{
    const uint64_t bytes = me_compare_host_bytes(line_of(row));
    if (bytes == 0) {
        me_str_append(cell, "-");
    } else {
        me_gib_append(cell, bytes);
    }
}

static bool any_uses_host(const me_compare_print *print)
{
    bool is_used = false;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        is_used = is_used || me_compare_host_bytes(&print->lines[i]) > 0;
    }
    return is_used;
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
    {"verdict", NULL, false, false, get_verdict},
    {"confidence", NULL, false, false, get_confidence},
    {"host", "GiB", true, false, get_host}, // where any setting keeps something
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
    {"verdict", NULL, false, false, get_verdict},
    {"confidence", NULL, false, false, get_confidence},
};

static const void *find_worst(const void *row)
{
    const me_compare_line *line = line_of(row);
    return line->n_stages == 0 ? NULL : &line->worst;
}

static const me_schema rank_schema = ME_SCHEMA(
    me_compare_stage, {ME_I32(me_compare_stage, rank), .title = "worst rank"});

static const me_schema line_schema =
    ME_SCHEMA(me_compare_line, {ME_FOUND(find_worst, me_compare_bytes_schema)},
              {ME_FOUND(find_worst, rank_schema)});

me_status me_compare_lines_table(const me_compare_print *print,
                                 me_table_printer printer, me_str *text)
{
    const bool has_ticks = print->comparison->durations != NULL;
    const size_t n_host = !has_ticks && any_uses_host(print) ? 1 : 0;
    const size_t n_lines = sizeof line_columns / sizeof *line_columns;
    return printer(
        &(me_table){.columns = has_ticks ? tick_columns : line_columns,
                    .n_columns =
                        has_ticks ? sizeof tick_columns / sizeof *tick_columns
                                  : n_lines - 1 + n_host,
                    .schema = &line_schema,
                    .n_after = 2 + n_host, // verdict, how sure it is, host
                    .narrow = "confidence;exposed comm;span bubble;in flight;"
                              "allocated;worst rank;requested;bubble;tokens/s;"
                              "reserved;",
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
};

static const void *find_stage(const void *row)
{
    return ((const stage_row *)row)->stage;
}

static const me_schema stage_schema =
    ME_SCHEMA(stage_row, {ME_FOUND(find_stage, me_compare_bytes_schema)});

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
    me_table table =
        *ME_FIELDS_TABLE(stage_columns, 0, &stage_schema, rows, n_rows);
    table.narrow = "allocated;in flight;requested;reserved;";
    const me_status status = printer(&table, text);
    me_free(rows);
    return status;
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
    me_compare_notes(c, text);
    return status == ME_OK ? me_str_status(text) : status;
}
