/**
 * @file
 * Tables as text: a layout is an array of columns, a row is any struct. The
 * text is the same on every terminal and in every locale.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_TABLE_H
#define MEMEST_REPORT_TABLE_H

#include "base/status.h"
#include "base/str.h"
#include "track/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A column that no field alone makes. */
typedef struct me_column {
    const char *title;
    const char *unit; /**< of its numbers, printed with the title; or NULL */
    bool is_number;   /**< aligned right */
    bool is_tree;     /**< shows which row is inside which */
    void (*get)(const void *row, me_str *cell); /**< appends the cell's text */
} me_column;

typedef struct me_table {
    const me_column *columns;
    size_t n_columns;
    const me_schema *schema; /**< of a row: its fields with a title, and those
                                  of records within that have one, are columns;
                                  NULL: none */
    size_t n_after;          /**< of the columns, at the end: they stand after
                                  those of the schema */
    const void *rows;
    size_t n_rows;
    size_t row_bytes; /**< size of one row */
    /** Row that row @p i is inside of, before it; -1: none. NULL: no tree. */
    int64_t (*parent)(const void *rows, size_t i);
} me_table;

/** A table without a tree: of an array of columns, and an array of rows. */
#define ME_TABLE(columns_of, rows_of, n_rows_of)                               \
    (&(me_table){.columns = (columns_of),                                      \
                 .n_columns = sizeof(columns_of) / sizeof *(columns_of),       \
                 .rows = (rows_of),                                            \
                 .n_rows = (n_rows_of),                                        \
                 .row_bytes = sizeof *(rows_of)})

/** A table of a schema's columns alone, and an array of rows. */
#define ME_FIELDS_TABLE(schema_of, rows_of, n_rows_of)                         \
    (&(me_table){.schema = (schema_of),                                        \
                 .rows = (rows_of),                                            \
                 .n_rows = (n_rows_of),                                        \
                 .row_bytes = sizeof *(rows_of)})

/**
 * Append the table, indented by two spaces, with a line of titles. Characters
 * that are not printable ASCII become "?". Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_table_print(const me_table *table, me_str *text) ME_MUST_CHECK;

/** How many columns it has, those of its schema with them. Local. */
size_t me_table_n_columns(const me_table *table);

/** The title, unit and alignment of column @p i; with a getter only if it is
 *  none of the schema's. Local. */
me_column me_table_column(const me_table *table, size_t i);

/** Append the text of a cell. Local. */
void me_table_cell(const me_table *table, size_t row, size_t column,
                   me_str *cell);

/** Who writes a table: me_table_print(), or another in another format. */
typedef me_status (*me_table_printer)(const me_table *table, me_str *text);

#endif /* MEMEST_REPORT_TABLE_H */
