/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/table.h"

#include "base/alloc.h"

#include <libsmartcols/libsmartcols.h>
#include <string.h>

enum {
    WIDTH = 1000 /* never narrower than the text, whatever the terminal */
};

static struct libscols_table *new_table(void)
{
    struct libscols_table *made = scols_new_table();
    if (made == NULL) {
        return NULL;
    }
    if (scols_table_set_termforce(made, SCOLS_TERMFORCE_NEVER) != 0 ||
        scols_table_set_termwidth(made, WIDTH) != 0 ||
        scols_table_enable_ascii(made, 1) != 0 ||
        scols_table_set_column_separator(made, "  ") != 0) {
        scols_unref_table(made);
        return NULL;
    }
    return made;
}

static me_status add_column(struct libscols_table *made,
                            const me_column *column)
{
    me_str title = {0};
    me_str_append(&title, column->title);
    if (column->unit != NULL) {
        me_str_printf(&title, " %s", column->unit);
    }
    int flags = column->is_number ? SCOLS_FL_RIGHT : 0;
    flags |= column->is_tree ? SCOLS_FL_TREE : 0;
    const bool is_added =
        me_str_status(&title) == ME_OK &&
        scols_table_new_column(made, me_str_text(&title), 0, flags) != NULL;
    me_str_fini(&title);
    return is_added ? ME_OK : ME_ERR_NOMEM;
}

static me_status fill_line(const me_table *table, size_t row,
                           const me_table_shape *shape,
                           struct libscols_line *line)
{
    me_status status = ME_OK;
    for (size_t i = 0; i < shape->n_columns && status == ME_OK; i++) {
        me_str cell = {0};
        me_table_text_cell(table, row, shape, i, &cell);
        if (me_str_status(&cell) != ME_OK ||
            scols_line_set_data(line, i, me_str_text(&cell)) != 0) {
            status = ME_ERR_NOMEM;
        }
        me_str_fini(&cell);
    }
    return status;
}

static me_status fill_table(const me_table *table, const me_table_shape *shape,
                            struct libscols_table *made)
{
    for (size_t i = 0; i < shape->n_columns; i++) {
        if (add_column(made, &shape->columns[i].shown) != ME_OK) {
            return ME_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        const int64_t parent =
            table->parent == NULL ? -1 : table->parent(table->rows, i);
        struct libscols_line *line = scols_table_new_line(
            made,
            parent < 0 ? NULL : scols_table_get_line(made, (size_t)parent));
        if (line == NULL || fill_line(table, i, shape, line) != ME_OK) {
            return ME_ERR_NOMEM;
        }
    }
    return ME_OK;
}

/** Each line with two spaces in front. */
static void append_indented(me_str *text, const me_table_shape *shape,
                            const char *lines)
{
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        me_str line = {0};
        me_str_append(&line, "  ");
        me_str_append_n(&line, lines, length);
        me_table_text_line(me_str_text(&line), line.length, shape, text);
        me_str_fini_piece(&line, text);
        lines += length + (lines[length] == '\n' ? 1 : 0);
    }
}

me_status me_table_print(const me_table *table, me_str *text)
{
    struct libscols_table *made = new_table();
    if (made == NULL) {
        return ME_ERR_NOMEM;
    }
    char *lines = NULL;
    me_table_shape shape;
    me_status status = me_table_fit(table, text->columns, &shape);
    if (status == ME_OK) {
        status = fill_table(table, &shape, made);
    }
    if (status == ME_OK && table->n_rows > 0 &&
        scols_print_table_to_string(made, &lines) != 0) {
        status = ME_ERR_NOMEM;
    }
    if (status == ME_OK && lines != NULL) {
        append_indented(text, &shape, lines);
        me_table_text_end(&shape, text);
        status = me_str_status(text);
    }
    me_free(lines); // made by the library
    me_str_fini(&shape.left_out);
    scols_unref_table(made);
    return status;
}
