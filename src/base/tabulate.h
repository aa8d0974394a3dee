/**
 * @file
 * A table of texts, printed as the Python package tabulate prints one in its
 * format "rst", or with tabulators between columns of even width.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_TABULATE_H
#define MEMEST_BASE_TABULATE_H

#include "base/str.h"

/** Rows one after another, the first one the header. The first failure sticks.
 *  All zero but n_columns is an empty one. */
typedef struct me_tabulate {
    uint32_t n_columns;
    me_str texts;  /**< of all cells, each with its NUL */
    size_t *cells; /**< where each begins; owned */
    uint32_t n_cells;
    uint32_t capacity;
    me_status status;
} me_tabulate;

/** Give back what it owns; without cells again. */
void me_tabulate_fini(me_tabulate *table);

/** Add a cell behind the last one; the text is copied. */
void me_tabulate_add(me_tabulate *table, const char *text);

/** As me_tabulate_add(), formatted as printf() does, of a text of less than 96
 *  bytes. */
void me_tabulate_printf(me_tabulate *table, const char *format, ...)
    ME_PRINTF(2, 3);

/**
 * Append the table with rules of `=`. A column of numbers alone stands with their
 * points one below the other, fractions with six digits at most; others to the
 * left. Where the first cell of a row is empty two points take its place, without
 * which reStructuredText takes the row for more of the one above.
 *
 * @param text  fails where the table has
 */
void me_tabulate_append_rst(const me_tabulate *table, me_str *text);

/** Append the table with each column filled up to its widest cell. */
void me_tabulate_append_plain(const me_tabulate *table, me_str *text);

#endif /* MEMEST_BASE_TABULATE_H */
