/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of a build without libsmartcols, for a program that needs nothing but
 * libc: the same text, to the byte. */
#include "base/alloc.h"
#include "report/table.h"

#include <string.h>

/** A table's texts. */
typedef struct grid {
    const me_table *table;
    me_table_shape shape;
    size_t widths[ME_TABLE_COLUMNS_MAX];
    me_str *cells; /**< by row, then column; the first row has the titles */
} grid;

static int64_t parent_of(const me_table *table, size_t row)
{
    return table->parent == NULL ? -1 : table->parent(table->rows, row);
}

/** Is there a row behind @p row that is inside of the same one? */
static bool has_next(const me_table *table, size_t row)
{
    const int64_t parent = parent_of(table, row);
    for (size_t i = row + 1; i < table->n_rows; i++) {
        if (parent_of(table, i) == parent) {
            return true;
        }
    }
    return false;
}

/** Lines from the rows that a row is inside of, outermost first. */
static void append_branch(const me_table *table, size_t row, bool is_own,
                          me_str *text)
{
    const int64_t parent = parent_of(table, row);
    if (parent < 0) {
        return;
    }
    append_branch(table, (size_t)parent, false, text);
    if (is_own) {
        me_str_append(text, has_next(table, row) ? "|-" : "`-");
    } else {
        me_str_append(text, has_next(table, row) ? "| " : "  ");
    }
}

static me_status fill_row(grid *g, size_t row)
{
    me_status status = ME_OK;
    for (size_t i = 0; i < g->shape.n_columns && status == ME_OK; i++) {
        me_str *cell = &g->cells[(row + 1) * g->shape.n_columns + i];
        if (g->shape.columns[i].shown.is_tree) {
            append_branch(g->table, row, true, cell);
        }
        me_table_text_cell(g->table, row, &g->shape, i, cell);
        status = me_str_status(cell);
        g->widths[i] =
            cell->length > g->widths[i] ? cell->length : g->widths[i];
    }
    return status;
}

static me_status fill_titles(grid *g)
{
    me_status status = ME_OK;
    for (size_t i = 0; i < g->shape.n_columns && status == ME_OK; i++) {
        const me_column *c = &g->shape.columns[i].shown;
        me_str_append(&g->cells[i], c->title);
        if (c->unit != NULL) {
            me_str_printf(&g->cells[i], " %s", c->unit);
        }
        status = me_str_status(&g->cells[i]);
        // an empty column takes a place, as libsmartcols has it
        g->widths[i] = g->cells[i].length > 0 ? g->cells[i].length : 1;
    }
    return status;
}

static void append_blanks(me_str *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        me_str_append(text, " ");
    }
}

/** A line with two spaces in front. */
static me_status print_line(const grid *g, size_t line, me_str *text)
{
    me_str made = {0};
    for (size_t i = 0; i < g->shape.n_columns; i++) {
        const me_str *cell = &g->cells[line * g->shape.n_columns + i];
        const size_t blanks = g->widths[i] - cell->length;
        const bool is_right = g->shape.columns[i].shown.is_number;
        append_blanks(&made, 2 + (is_right ? blanks : 0));
        me_str_append_n(&made, me_str_text(cell), cell->length);
        append_blanks(&made, is_right ? 0 : blanks);
    }
    me_table_text_line(me_str_text(&made), made.length, &g->shape, text);
    const me_status status = me_str_status(&made);
    me_str_fini(&made);
    return status;
}

/** The rows inside of one, and what is inside of them. */
static me_status print_rows(const grid *g, int64_t parent, me_str *text)
{
    me_status status = ME_OK;
    for (size_t i = 0; i < g->table->n_rows && status == ME_OK; i++) {
        if (parent_of(g->table, i) == parent) {
            status = print_line(g, i + 1, text);
            if (status == ME_OK && g->table->parent != NULL) {
                status = print_rows(g, (int64_t)i, text);
            }
        }
    }
    return status;
}

me_status me_table_print(const me_table *table, me_str *text)
{
    grid g = {.table = table};
    if (table->n_rows == 0) {
        return ME_OK;
    }
    me_status status = me_table_fit(table, text->columns, &g.shape);
    const size_t n_cells = (table->n_rows + 1) * g.shape.n_columns;
    g.cells = me_alloc(n_cells, sizeof *g.cells, "report.table");
    if (status == ME_OK) {
        status = g.cells == NULL ? ME_ERR_NOMEM : fill_titles(&g);
    }
    for (size_t i = 0; i < table->n_rows && status == ME_OK; i++) {
        status = fill_row(&g, i);
    }
    if (status == ME_OK) {
        status = print_line(&g, 0, text);
    }
    if (status == ME_OK) {
        status = print_rows(&g, -1, text);
        me_table_text_end(&g.shape, text);
    }
    me_str_fini(&g.shape.left_out);
    for (size_t i = 0; g.cells != NULL && i < n_cells; i++) {
        me_str_fini(&g.cells[i]);
    }
    me_free(g.cells);
    return status == ME_OK ? me_str_status(text) : status;
}
