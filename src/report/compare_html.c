/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_format.h"
#include "report/compare_timeline.h"
#include "report/html_charts.h"
#include "report/page.h"

enum {
    MEMORY_STEP = 56 /* pixels of one stage's memory */
};

static const char timeline_columns[] =
    "\"stage\",\"name\",\"chunk\",\"microbatch\",\"start\",\"end\"";
static const char memory_columns[] =
    "\"row\",\"x\",\"x2\",\"name\",\"chunk\",\"microbatch\",\"begin\","
    "\"peak\",\"end\",\"reserved\"";

static double milliseconds(int64_t ns)
{
    return (double)ns * 1e-6;
}

static void add_span(int32_t stage, const me_timed_part *timed,
                     me_chart_rows *rows)
{
    me_chart_row_begin(rows);
    me_chart_integer(rows, stage);
    me_chart_text(rows, timed->part->name);
    me_chart_integer(rows, timed->part->chunk);
    me_chart_integer(rows, timed->part->microbatch);
    me_chart_integer(rows, timed->start_ns);
    me_chart_integer(rows, timed->end_ns);
    me_chart_row_end(rows);
}

/** Microseconds, so that numbers of the axis stay short. */
static void add_bytes(int32_t stage, const me_timed_part *timed,
                      me_chart_rows *rows)
{
    const me_course_part *part = timed->part;
    me_str name = {0};
    me_str_printf(&name, "stage %d", (int)stage);
    me_chart_row_begin(rows);
    me_chart_text(rows, me_str_text(&name));
    me_chart_integer(rows, timed->start_ns / 1000);
    me_chart_integer(rows, timed->end_ns / 1000);
    me_chart_part(rows, part);
    me_str_fini_piece(&name, &rows->text);
}

/** Before and between actions a rank waits, and what it holds stays. */
static void add_wait(int32_t stage, const me_timed_part *before,
                     const me_timed_part *after, me_chart_rows *rows)
{
    const int64_t start = before == NULL ? 0 : before->end_ns;
    if (start >= after->start_ns) {
        return;
    }
    const me_course_part *b = after->part;
    const uint64_t held =
        before == NULL ? b->requested.begin : before->part->requested.end;
    const me_course_part wait = {
        .name = "wait",
        .chunk = -1,
        .microbatch = ME_NO_MICROBATCH,
        .requested = {held,
                      held > b->requested.begin ? held : b->requested.begin,
                      b->requested.begin},
        .reserved.peak =
            before == NULL ? b->reserved.begin : before->part->reserved.end,
    };
    add_bytes(stage,
              &(me_timed_part){
                  .part = &wait, .start_ns = start, .end_ns = after->start_ns},
              rows);
}

static me_status add_stage(const me_compare_line *line, int32_t stage,
                           me_chart_rows *spans, me_chart_rows *bytes)
{
    me_timed_course course = {.n_parts = 0};
    const me_status status = me_timed_course_init(line, stage, &course);
    for (uint32_t i = 0; status == ME_OK && i < course.n_parts; i++) {
        add_span(stage, &course.parts[i], spans);
        add_wait(stage, i == 0 ? NULL : &course.parts[i - 1], &course.parts[i],
                 bytes);
        add_bytes(stage, &course.parts[i], bytes);
    }
    me_timed_course_fini(&course);
    return status;
}

static me_status append_charts(const me_compare_line *line, int64_t end_ns,
                               me_str *page)
{
    const char *unit = line->row->ticks_step == NULL ? "ms" : "ticks";
    me_chart_rows spans = {.count = 0};
    me_chart_rows bytes = {.count = 0};
    me_status status = ME_OK;
    for (int32_t i = 0; i < line->n_stages && status == ME_OK; i++) {
        status = add_stage(line, i, &spans, &bytes);
    }
    if (status == ME_OK && spans.count == 0) {
        me_page_note(page, "The predicted times are not of the actions that "
                           "were run, so nothing is drawn.");
    } else if (status == ME_OK) {
        status = me_page_chart(
            page,
            &(me_chart){.spec = "timeline",
                        .data = "parts",
                        .columns = timeline_columns,
                        .rows = &spans,
                        .signals = json_pack(
                            "{s:i, s:f, s:s}", "rows", (int)line->n_stages,
                            "end_ms", milliseconds(end_ns), "unit", unit)});
        if (status == ME_OK) {
            status = me_page_chart(
                page, &(me_chart){.spec = "course",
                                  .data = "parts",
                                  .columns = memory_columns,
                                  .rows = &bytes,
                                  .signals = json_pack(
                                      "{s:i, s:i, s:s, s:f, s:f}", "rows",
                                      (int)line->n_stages, "step", MEMORY_STEP,
                                      "x_title", unit, "x_scale", 1000.0,
                                      "x_end", milliseconds(end_ns))});
        }
    }
    me_chart_rows_fini(&spans);
    me_chart_rows_fini(&bytes);
    return status;
}

/** The longest step, so that all timelines have one scale. */
static int64_t longest_ns(const me_compare_print *print)
{
    int64_t longest = 0;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_step_time *step = me_compare_step(&print->lines[i]);
        if (step != NULL && step->step_ns > longest) {
            longest = step->step_ns;
        }
    }
    return longest;
}

static me_status append_line(const me_compare_line *line, int64_t end_ns,
                             me_str *page)
{
    me_str title = {0};
    me_compare_title(line->row, &title);
    me_page_heading(page, me_str_text(&title));
    me_str_fini_piece(&title, page);
    if (line->row->reason != NULL) {
        me_page_note(page, line->row->reason);
        return ME_OK;
    }
    if (me_compare_step(line) == NULL) {
        me_page_note(page, "There are no times to draw.");
        return ME_OK;
    }
    return append_charts(line, end_ns, page);
}

me_status me_compare_html(const me_compare_print *print, me_str *page)
{
    const me_comparison *c = print->comparison;
    me_str text = {0};
    me_str_printf(&text, "memest compare%s%s", c->name[0] == '\0' ? "" : ": ",
                  c->name);
    me_page_begin(page, me_str_text(&text));
    me_str_fini(&text);
    me_compare_explain(print, &text);
    me_page_note(page, me_str_text(&text));
    me_str_fini(&text);
    me_status status = me_compare_lines_table(print, me_page_table, page);
    const int64_t end_ns = longest_ns(print);
    for (size_t i = 0; i < c->n_rows && status == ME_OK; i++) {
        status = append_line(&print->lines[i], end_ns, page);
    }
    if (status == ME_OK) {
        me_page_heading(page, "Stages");
        status = me_compare_stages_table(print, me_page_table, page);
    }
    me_compare_notes(c, &text);
    if (me_str_text(&text)[0] != '\0') {
        me_page_details(page, "What is not modelled or assumed",
                        me_str_text(&text));
    }
    me_str_fini(&text);
    if (status == ME_OK) {
        status = me_compare_text(print, &text);
        me_page_details(page, "The whole comparison as text",
                        me_str_text(&text));
    }
    me_str_fini(&text);
    me_page_end(page);
    return status == ME_OK ? me_str_status(page) : status;
}
