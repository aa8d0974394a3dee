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
    size_t row_bytes;   /**< size of one row */
    bool ends_in_shell; /**< the last column has words for a shell to paste, the
                             one before it their whole name */
    /** Titles, a ';' behind each, of columns that a text too narrow for all does
     *  without, the first one first; NULL: none. */
    const char *narrow;
    /** Row that row @p i is inside of, before it; -1: none. NULL: no tree. */
    int64_t (*parent)(const void *rows, size_t i);
} me_table;

/** The columns of a record that @p find_of finds for a row. */
#define ME_FOUND(find_of, schema_of)                                           \
    .title = "", .kind = ME_FIELD_RECORD, .find = (find_of), .of = &(schema_of)

/** A table without a tree: of an array of columns, and an array of rows. */
#define ME_TABLE(columns_of, rows_of, n_rows_of)                               \
    (&(me_table){.columns = (columns_of),                                      \
                 .n_columns = sizeof(columns_of) / sizeof *(columns_of),       \
                 .rows = (rows_of),                                            \
                 .n_rows = (n_rows_of),                                        \
                 .row_bytes = sizeof *(rows_of)})

/** Likewise, with the columns of a schema between @p columns_of and the last
 *  @p n_after_of of these. */
#define ME_FIELDS_TABLE(columns_of, n_after_of, schema_of, rows_of, n_rows_of) \
    (&(me_table){.columns = (columns_of),                                      \
                 .n_columns = sizeof(columns_of) / sizeof *(columns_of),       \
                 .n_after = (n_after_of),                                      \
                 .schema = (schema_of),                                        \
                 .rows = (rows_of),                                            \
                 .n_rows = (n_rows_of),                                        \
                 .row_bytes = sizeof *(rows_of)})

/**
 * Append the table, indented by two spaces, with a line of titles. Characters
 * that are not printable ASCII become "?". Where @p text has columns that the table
 * is too wide for, it loses those of @ref me_table::narrow, which a line below
 * names, cells of text lose their middle, and what is in the last column goes on
 * in the next line; names of words to paste stay whole, and go there as well where
 * they have no room. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_table_print(const me_table *table, me_str *text) ME_MUST_CHECK;

enum {
    ME_TABLE_COLUMNS_MAX = 32
};

/** A column of the table's or of its schema's. */
typedef struct me_table_column {
    me_column shown;
    const me_field *field;  /**< NULL: the column has a getter */
    const me_field *within; /**< the record of a row that has the field; NULL:
                                 the row itself */
    size_t width;           /**< of its widest cell as printed; 0: any */
} me_table_column;

/** A table's columns on a text of some width. */
typedef struct me_table_shape {
    me_table_column columns[ME_TABLE_COLUMNS_MAX];
    size_t n_columns;
    size_t last_begins; /**< where the last column begins, if it goes on in
                             further lines */
    size_t name_begins; /**< the column before it, if that goes on as well; 0:
                             it does not */
    bool ends_in_shell;
    size_t further;  /**< and where it goes on; 0: it does not */
    me_str left_out; /**< titles of columns that are not there; owned */
} me_table_shape;

/** The table's columns. @return how many. Local. */
size_t me_table_lay_out(const me_table *table,
                        me_table_column columns[ME_TABLE_COLUMNS_MAX]);

/** Is a title one of @ref me_table::narrow? Local. */
bool me_table_can_spare(const me_table *table, const char *title);

/**
 * The columns as they are printed, on a text of @p width columns (0: any). Local.
 *
 * @param shape_out  give its left_out back
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_table_fit(const me_table *table, size_t width,
                       me_table_shape *shape_out) ME_MUST_CHECK;

/** Append a cell as it is printed: in ASCII, no wider than its column. Local. */
void me_table_text_cell(const me_table *table, size_t row,
                        const me_table_shape *shape, size_t column,
                        me_str *cell);

/** Append a line of a table, a line's end, without blanks before it. Local. */
void me_table_text_line(const char *line, size_t length,
                        const me_table_shape *shape, me_str *text);

/** Append what the shape has left out, a line; nothing if that is nothing. */
void me_table_text_end(const me_table_shape *shape, me_str *text);

/** Append the text of a cell. Local. */
void me_table_cell(const me_table *table, size_t row,
                   const me_table_column *column, me_str *cell);

/**
 * Append what a field is. Local.
 *
 * @param record    NULL: there is none
 * @param is_exact  bytes and counts as they are, times in seconds, nothing for
 *                  what is not known; else GiB, groups of three, milliseconds
 *                  and "-"
 */
void me_field_append(const me_field *field, const void *record, bool is_exact,
                     me_str *text);

/** Who writes a table: me_table_print(), or another in another format. */
typedef me_status (*me_table_printer)(const me_table *table, me_str *text);

#endif /* MEMEST_REPORT_TABLE_H */
