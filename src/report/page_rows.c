/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/page.h"

#include <inttypes.h>
#include <string.h>

void me_chart_row_begin(me_chart_rows *rows)
{
    me_str_append(&rows->text, rows->count == 0 ? "[" : ",\n[");
    rows->count++;
    rows->column = 0;
    rows->kept = rows->text.length;
}

void me_chart_row_end(me_chart_rows *rows)
{
    if (me_str_status(&rows->text) == ME_OK) {
        rows->text.length = rows->kept;
    }
    me_str_append(&rows->text, "]");
}

/** The cell's column, after what stands between it and the one before. */
static size_t begin_cell(me_chart_rows *rows)
{
    const size_t column = rows->column++;
    if (column > 0) {
        me_str_append(&rows->text, ",");
    }
    if (column >= ME_CHART_COLUMNS_MAX) {
        rows->text.status = ME_ERR_INTERNAL;
        return 0;
    }
    return column;
}

static void end_cell(me_chart_rows *rows, bool differs)
{
    // A first row has all columns.
    if (differs || rows->count == 1) {
        rows->kept = rows->text.length;
    }
}

/** The difference from the number above; that of signed ones is the same. */
static void add_difference(me_chart_rows *rows, size_t column, uint64_t number)
{
    const int64_t more = (int64_t)(number - rows->last[column]);
    me_str_printf(&rows->text, "%" PRId64, more);
    rows->last[column] = number;
    end_cell(rows, more != 0);
}

void me_chart_number(me_chart_rows *rows, uint64_t number)
{
    const size_t column = begin_cell(rows);
    if (number != UINT64_MAX) {
        add_difference(rows, column, number);
        return;
    }
    me_str_append(&rows->text, "null");
    end_cell(rows, true);
}

void me_chart_integer(me_chart_rows *rows, int64_t number)
{
    add_difference(rows, begin_cell(rows), (uint64_t)number);
}

static void append_text(me_str *json, const char *text)
{
    me_str_append(json, "\"");
    for (; *text != '\0'; text++) {
        const bool is_shown = (unsigned char)*text >= ' ' && *text != '\177';
        if (*text == '\n') {
            me_str_append(json, "\\n");
        } else if (*text == '"' || *text == '\\') {
            me_str_printf(json, "\\u%04x", (unsigned)*text);
        } else {
            me_str_append_n(json, is_shown ? text : "?", 1);
        }
    }
    me_str_append(json, "\"");
}

static const char *text_at(const me_chart_rows *rows, uint32_t index)
{
    return me_str_text(&rows->texts) + rows->starts[index];
}

/** @return its index; n_texts: it is not there */
static uint32_t find_text(const me_chart_rows *rows, uint32_t above,
                          const char *text)
{
    if (above < rows->n_texts && strcmp(text_at(rows, above), text) == 0) {
        return above;
    }
    uint32_t at = 0;
    while (at < rows->n_texts && strcmp(text_at(rows, at), text) != 0) {
        at++;
    }
    return at;
}

static void keep_text(me_chart_rows *rows, const char *text)
{
    uint32_t *grown =
        me_grow(rows->starts, rows->n_texts, &rows->texts_capacity,
                sizeof *grown, "page.texts");
    if (grown == NULL) {
        rows->text.status = ME_ERR_NOMEM;
        return;
    }
    rows->starts = grown;
    grown[rows->n_texts] = (uint32_t)rows->texts.length;
    me_str_append_n(&rows->texts, text, strlen(text) + 1);
    if (me_str_status(&rows->texts) != ME_OK) {
        rows->text.status = ME_ERR_NOMEM;
        return;
    }
    rows->n_texts++;
}

void me_chart_text(me_chart_rows *rows, const char *text)
{
    const size_t column = begin_cell(rows);
    const uint32_t above = (uint32_t)rows->last[column];
    const uint32_t index = find_text(rows, above, text);
    // A column is one of texts for who reads it from its first word on.
    if (index == rows->n_texts || !rows->has_text[column]) {
        rows->last[column] = rows->n_texts;
        append_text(&rows->text, text);
        keep_text(rows, text);
        end_cell(rows, true);
    } else {
        rows->last[column] = index;
        me_str_printf(&rows->text, "%" PRIu32, index);
        end_cell(rows, index != above);
    }
    rows->has_text[column] = true;
}

void me_chart_rows_fini(me_chart_rows *rows)
{
    me_str_fini(&rows->text);
    me_str_fini(&rows->texts);
    me_free(rows->starts);
    *rows = (me_chart_rows){.count = 0};
}
