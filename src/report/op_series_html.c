/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/op_series_report.h"
#include "report/page.h"

#include <string.h>

static const double BYTES_OF_MB = 1048576.0;

enum {
    ROWS_MAX = 100000 /* beyond it a browser has no fun */
};

/** The plots: which counters each shows. */
static const struct {
    const char *title;
    bool shows[3];
} plots[] = {
    {"Allocated, active and reserved", {true, true, true}},
    {"Allocated", {true, false, false}},
    {"Active", {false, true, false}},
    {"Reserved", {false, false, true}},
};

static const char *const names[] = {"allocated", "active", "reserved"};

static uint64_t counter(const me_op_row *row, int which)
{
    const uint64_t values[] = {row->memory.allocated, row->memory.active,
                               row->memory.reserved};
    return values[which];
}

static void add_point(me_chart_rows *rows, const char *series, uint64_t x,
                      uint64_t bytes, const char *name)
{
    me_chart_row_begin(rows);
    me_chart_text(rows, series);
    me_chart_number(rows, x);
    me_chart_number(rows, bytes);
    me_chart_text(rows, name);
    me_chart_row_end(rows);
}

/** A marker is a line from below the least to above the most. */
static void add_markers(me_chart_rows *rows, const me_op_series *s,
                        uint64_t least, uint64_t most)
{
    for (uint32_t i = 0; i < s->n_markers; i++) {
        const me_op_marker *m = &s->markers[i];
        add_point(rows, m->name, m->at, (uint64_t)(0.999 * (double)least),
                  m->name);
        add_point(rows, m->name, m->at, (uint64_t)(1.001 * (double)most),
                  m->name);
    }
}

static me_status append_plot(me_str *page, const me_op_series *s,
                             const bool *shows)
{
    me_chart_rows rows = {.count = 0};
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (int which = 0; which < 3; which++) {
        for (uint32_t i = 0; shows[which] && i < s->n_rows; i++) {
            const uint64_t bytes = counter(&s->rows[i], which);
            least = bytes < least ? bytes : least;
            most = bytes > most ? bytes : most;
            add_point(&rows, names[which], i, bytes, s->rows[i].name);
        }
    }
    add_markers(&rows, s, s->n_rows == 0 ? 0 : least, most);
    const me_status status = me_page_chart(
        page, &(me_chart){.spec = "operations",
                          .data = "points",
                          .columns = "\"series\",\"x\",\"bytes\",\"name\"",
                          .rows = &rows,
                          .signals = json_pack("{s:f}", "unit", BYTES_OF_MB)});
    me_chart_rows_fini(&rows);
    return status;
}

me_status me_op_series_html(me_str *page, const me_op_series *s, uint32_t top,
                            me_diag *diag)
{
    if (!me_page_is_available()) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "--format html: memest was built without Vega");
    }
    if (s->n_rows > ROWS_MAX) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--format html: %u operations are too many to draw, "
                       "%d are not",
                       s->n_rows, ROWS_MAX);
    }
    me_str text = {0};
    me_status status = me_op_series_summary(&text, s, top);
    me_page_begin(page, "memest: memory after each operation");
    me_page_lines(page, me_str_text(&text));
    me_str_fini(&text);
    for (size_t i = 0; status == ME_OK && i < sizeof plots / sizeof plots[0];
         i++) {
        me_page_heading(page, plots[i].title);
        status = append_plot(page, s, plots[i].shows);
    }
    me_page_end(page);
    return status == ME_OK ? me_str_status(page) : status;
}
