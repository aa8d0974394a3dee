/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page.h"

static void append_titles(const me_table_column *columns, size_t n_columns,
                          me_str *page)
{
    me_str_append(page, "<thead><tr>");
    for (size_t i = 0; i < n_columns; i++) {
        const me_column *c = &columns[i].shown;
        me_str_append(page, c->is_number ? "<th class=\"number\">"
                            : c->is_tree ? "<th data-tree=\"1\">"
                                         : "<th>");
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
        if (c->is_tree) {
            me_str_printf(page, "<td style=\"padding-left: %dem\">",
                          depth_of(table, row) + 1);
        } else {
            const bool is_shell = table->ends_in_shell && i + 1 == n_columns;
            me_str_append(page, is_shell       ? "<td class=\"shell\">"
                                : c->is_number ? "<td class=\"number\">"
                                               : "<td>");
        }
        me_html_append(page, me_str_text(&cell));
        me_str_append(page, "</td>");
        status = me_str_status(&cell);
        me_str_fini(&cell);
    }
    me_str_append(page, "</tr>\n");
    return status;
}

me_status me_page_table(const me_table *table, me_str *page)
{
    me_str_append(page, "<div class=\"wide\"><table>\n");
    me_table_column columns[ME_TABLE_COLUMNS_MAX];
    const size_t n_columns = me_table_lay_out(table, columns);
    append_titles(columns, n_columns, page);
    me_str_append(page, "<tbody>\n");
    me_status status = ME_OK;
    for (size_t i = 0; i < table->n_rows && status == ME_OK; i++) {
        status = append_row(table, i, columns, n_columns, page);
    }
    me_str_append(page, "</tbody></table></div>\n");
    return status == ME_OK ? me_str_status(page) : status;
}
