/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page.h"

#include <string.h>

/** Begin a cell; on a narrow screen columns that can be spared have none. */
static void open_cell(const me_table *table, const me_column *column,
                      const char *name, bool is_shell, me_str *page)
{
    const bool is_spare = me_table_can_spare(table, column->title);
    const char *kind = is_shell ? "shell" : column->is_number ? "number" : "";
    me_str_printf(page, "<%s", name);
    if (is_spare || *kind != '\0') {
        me_str_printf(page, " class=\"%s%s%s\"", kind,
                      is_spare && *kind != '\0' ? " " : "",
                      is_spare ? "spare" : "");
    }
}

static void append_titles(const me_table *table, const me_table_column *columns,
                          size_t n_columns, me_str *page)
{
    me_str_append(page, "<thead><tr>");
    for (size_t i = 0; i < n_columns; i++) {
        const me_column *c = &columns[i].shown;
        open_cell(table, c, "th", false, page);
        me_str_append(page, c->is_tree ? " data-tree=\"1\">" : ">");
        me_html_append(page, c->title);
        if (c->unit != NULL) {
            me_str_append(page, " ");
            me_html_append(page, c->unit);
        }
        me_str_append(page, "</th>");
    }
    me_str_append(page, "</tr></thead>\n");
}

/** How many rows a row is inside of. */
static int depth_of(const me_table *table, size_t row)
{
    int depth = 0;
    int64_t parent =
        table->parent == NULL ? -1 : table->parent(table->rows, row);
    while (parent >= 0) {
        depth++;
        parent = table->parent(table->rows, (size_t)parent);
    }
    return depth;
}

/** What is to be pasted, in words that no line break parts: a browser would, behind
 *  a hyphen. */
static me_status append_words(const char *text, me_str *page)
{
    me_status status = ME_OK;
    while (*text != '\0' && status == ME_OK) {
        const size_t length = strcspn(text, " ");
        const size_t n_spaces = strspn(text + length, " ");
        me_str word = {0};
        me_str_append_n(&word, text, length);
        me_str_append(page, "<span>");
        me_html_append(page, me_str_text(&word));
        me_str_append(page, "</span>");
        me_str_append_n(page, text + length, n_spaces);
        status = me_str_status(&word);
        me_str_fini(&word);
        text += length + n_spaces;
    }
    return status;
}

static me_status append_row(const me_table *table, size_t row,
                            const me_table_column *columns, size_t n_columns,
                            me_str *page)
{
    me_status status = ME_OK;
    if (table->parent == NULL) {
        me_str_append(page, "<tr>");
    } else {
        me_str_printf(page, "<tr data-depth=\"%d\">", depth_of(table, row));
    }
    for (size_t i = 0; i < n_columns && status == ME_OK; i++) {
        const me_column *c = &columns[i].shown;
        me_str cell = {0};
        me_table_cell(table, row, &columns[i], &cell);
        const bool is_shell = table->ends_in_shell && i + 1 == n_columns;
        open_cell(table, c, "td", is_shell, page);
        if (c->is_tree) {
            me_str_printf(page, " style=\"padding-left: %dem\"",
                          depth_of(table, row) + 1);
        }
        me_str_append(page, ">");
        if (is_shell) {
            status = append_words(me_str_text(&cell), page);
        } else {
            me_html_append(page, me_str_text(&cell));
        }
        me_str_append(page, "</td>");
        status = status == ME_OK ? me_str_status(&cell) : status;
        me_str_fini(&cell);
    }
    me_str_append(page, "</tr>\n");
    return status;
}

/** Has a column before it this title, of another unit? */
static bool is_repeated(const me_table_column *columns, size_t column)
{
    bool is_there = false;
    for (size_t i = 0; i < column; i++) {
        is_there = is_there || strcmp(columns[i].shown.title,
                                      columns[column].shown.title) == 0;
    }
    return is_there;
}

/** What a narrow screen leaves out. */
static void append_left_out(const me_table *table,
                            const me_table_column *columns, size_t n_columns,
                            me_str *page)
{
    bool is_any = false;
    for (size_t i = 0; i < n_columns; i++) {
        const char *title = columns[i].shown.title;
        if (*title != '\0' && me_table_can_spare(table, title) &&
            !is_repeated(columns, i)) {
            me_str_append(page, is_any ? ", "
                                       : "<p class=\"note left_out\">Left out, "
                                         "for lack of room: ");
            me_html_append(page, title);
            is_any = true;
        }
    }
    me_str_append(page, is_any ? "</p>\n" : "");
}

me_status me_page_table(const me_table *table, me_str *page)
{
    me_str_printf(page, "<div class=\"wide\"><table%s>\n",
                  table->ends_in_shell ? " class=\"pasted\"" : "");
    me_table_column columns[ME_TABLE_COLUMNS_MAX];
    const size_t n_columns = me_table_lay_out(table, columns);
    append_titles(table, columns, n_columns, page);
    me_str_append(page, "<tbody>\n");
    me_status status = ME_OK;
    for (size_t i = 0; i < table->n_rows && status == ME_OK; i++) {
        status = append_row(table, i, columns, n_columns, page);
    }
    me_str_append(page, "</tbody></table></div>\n");
    append_left_out(table, columns, n_columns, page);
    return status == ME_OK ? me_str_status(page) : status;
}
