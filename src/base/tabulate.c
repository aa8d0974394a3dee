/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tabulate.h"

#include "base/alloc.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_BYTES = 48,
    PRINTED_BYTES = 96,
    AIR = 2 /* columns that a header is wider than its text */
};

/** What all cells of a column can be read as. */
typedef enum kind {
    KIND_BOOL,
    KIND_INT,
    KIND_FLOAT,
    KIND_TEXT
} kind;

typedef struct column {
    kind kind;
    size_t width;
    size_t digits; /**< behind the point, of numbers; the point counts */
} column;

void me_tabulate_fini(me_tabulate *table)
{
    me_str_fini(&table->texts);
    me_free(table->cells);
    *table = (me_tabulate){.n_columns = table->n_columns};
}

void me_tabulate_add(me_tabulate *table, const char *text)
{
    size_t *cells = me_grow(table->cells, table->n_cells, &table->capacity,
                            sizeof *cells, "tabulate.cells");
    if (cells == NULL) {
        table->status = ME_ERR_NOMEM;
        return;
    }
    table->cells = cells;
    const size_t begin = table->texts.length;
    me_str_append_n(&table->texts, text, strlen(text) + 1);
    if (me_str_status(&table->texts) != ME_OK) {
        table->status = me_str_status(&table->texts);
        return;
    }
    table->cells[table->n_cells++] = begin;
}

void me_tabulate_printf(me_tabulate *table, const char *format, ...)
{
    char text[PRINTED_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    me_tabulate_add(table, text);
}

static uint32_t rows_of(const me_tabulate *t)
{
    return t->n_columns > 0 ? t->n_cells / t->n_columns : 0;
}

static const char *cell_at(const me_tabulate *t, uint32_t row, uint32_t index)
{
    const char *text =
        t->texts.text + t->cells[(size_t)row * t->n_columns + index];
    return index == 0 && *text == '\0' ? ".." : text;
}

static bool is_int(const char *text)
{
    text += *text == '-' || *text == '+' ? 1 : 0;
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

/** Hexadecimal numbers and "infinity", which strtod() reads as well, are none;
 *  nor is what is too large for a double. */
static bool is_float(const char *text)
{
    if (strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 ||
        strcmp(text, "-inf") == 0) {
        return true;
    }
    if (*text == '\0' || strspn(text, "+-.0123456789eE") != strlen(text)) {
        return false;
    }
    char *end = NULL;
    const double value = strtod(text, &end);
    return *end == '\0' && isinf(value) == 0;
}

static kind kind_of(const char *text)
{
    if (*text == '\0' || strcmp(text, "True") == 0 ||
        strcmp(text, "False") == 0) {
        return KIND_BOOL;
    }
    if (is_int(text)) {
        return KIND_INT;
    }
    return is_float(text) ? KIND_FLOAT : KIND_TEXT;
}

/** The cell as it is printed: of a column of fractions as "%g" has it. */
static const char *format_cell(const column *c, const char *text,
                               char number[NUMBER_BYTES])
{
    if (c->kind != KIND_FLOAT || *text == '\0') {
        return text;
    }
    (void)snprintf(number, NUMBER_BYTES, "%g", strtod(text, NULL));
    return number;
}

/** Letters behind the point, or behind the e where there is none, and the one
 *  itself. */
static size_t digits_of(const char *number)
{
    const char *point = strchr(number, '.');
    if (point == NULL) {
        point = strchr(number, 'e');
    }
    return point == NULL ? 0 : strlen(point);
}

static bool is_number(const column *c)
{
    return c->kind == KIND_INT || c->kind == KIND_FLOAT;
}

static column measure(const me_tabulate *t, uint32_t index)
{
    column c = {.kind = KIND_BOOL};
    char number[NUMBER_BYTES];
    for (uint32_t r = 1; r < rows_of(t); r++) {
        const kind of_cell = kind_of(cell_at(t, r, index));
        c.kind = of_cell > c.kind ? of_cell : c.kind;
    }
    for (uint32_t r = 1; is_number(&c) && r < rows_of(t); r++) {
        const size_t digits =
            digits_of(format_cell(&c, cell_at(t, r, index), number));
        c.digits = digits > c.digits ? digits : c.digits;
    }
    c.width = strlen(cell_at(t, 0, index)) + AIR;
    for (uint32_t r = 1; r < rows_of(t); r++) {
        const char *text = format_cell(&c, cell_at(t, r, index), number);
        const size_t air = is_number(&c) ? c.digits - digits_of(text) : 0;
        const size_t width = strlen(text) + air;
        c.width = width > c.width ? width : c.width;
    }
    return c;
}

static void repeat(me_str *text, const char *what, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        me_str_append(text, what);
    }
}

static void append_rule(me_str *text, const column *columns, uint32_t count)
{
    for (uint32_t c = 0; c < count; c++) {
        me_str_append(text, c == 0 ? "" : "  ");
        repeat(text, "=", columns[c].width);
    }
    me_str_append(text, "\n");
}

/** Blanks are put before what follows them, so that none end a line. */
static void append_row(const me_tabulate *t, uint32_t row,
                       const column *columns, me_str *text)
{
    size_t blanks = 0;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const column *c = &columns[i];
        char number[NUMBER_BYTES];
        const char *said = cell_at(t, row, i);
        size_t behind = c->width - strlen(said);
        size_t before = 0;
        if (row > 0) {
            said = format_cell(c, said, number);
            behind = c->width - strlen(said);
        }
        if (is_number(c)) {
            const size_t air = row > 0 ? c->digits - digits_of(said) : 0;
            before = behind - air;
            behind = air;
        }
        blanks += before;
        if (*said != '\0') {
            repeat(text, " ", blanks);
            me_str_append(text, said);
            blanks = 0;
        }
        blanks += behind + 2;
    }
    me_str_append(text, "\n");
}

/** @return room for all columns; NULL where there are none, or @p text fails */
static column *make_columns(const me_tabulate *t, me_str *text)
{
    column *columns = NULL;
    me_status status = t->status;
    if (status == ME_OK && t->n_columns > 0) {
        columns = me_alloc(t->n_columns, sizeof *columns, "tabulate.columns");
        status = columns != NULL ? ME_OK : ME_ERR_NOMEM;
    }
    if (status != ME_OK && text->status == ME_OK) {
        text->status = status;
    }
    return columns;
}

void me_tabulate_append_rst(const me_tabulate *table, me_str *text)
{
    column *columns = make_columns(table, text);
    if (columns == NULL) {
        return;
    }
    for (uint32_t c = 0; c < table->n_columns; c++) {
        columns[c] = measure(table, c);
    }
    append_rule(text, columns, table->n_columns);
    for (uint32_t r = 0; r < rows_of(table); r++) {
        append_row(table, r, columns, text);
        if (r == 0) {
            append_rule(text, columns, table->n_columns);
        }
    }
    append_rule(text, columns, table->n_columns);
    me_free(columns);
}

/** Columns of texts, whatever is in them, with no room to spare. */
static void measure_plain(const me_tabulate *t, column *columns)
{
    for (uint32_t i = 0; i < t->n_cells; i++) {
        column *c = &columns[i % t->n_columns];
        const size_t length = strlen(t->texts.text + t->cells[i]);
        c->width = length > c->width ? length : c->width;
    }
}

void me_tabulate_append_plain(const me_tabulate *table, me_str *text)
{
    column *columns = make_columns(table, text);
    if (columns == NULL) {
        return;
    }
    measure_plain(table, columns);
    for (uint32_t i = 0; i < table->n_cells; i++) {
        const uint32_t c = i % table->n_columns;
        const char *said = table->texts.text + table->cells[i];
        me_str_append(text, said);
        repeat(text, " ", columns[c].width - strlen(said));
        me_str_append(text, c + 1 < table->n_columns ? "\t" : "\n");
    }
    me_free(columns);
}
