/**
 * @file
 * HTML pages of reports: one file that needs nothing else, with charts drawn
 * by Vega in the reader's browser. Text is escaped; nothing that a job brings
 * with it becomes markup or a script.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_PAGE_H
#define MEMEST_REPORT_PAGE_H

#include "base/status.h"
#include "base/str.h"
#include "report/table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** Was memest built with Vega? Without it no page can be made. Local. */
bool me_page_is_available(void);

/** Append @p text so that a browser shows it as it is. Local. */
void me_html_append(me_str *page, const char *text);

/** @name Parts of a page
 *  Each appends itself; a failure sticks to @p page. Local.
 *  @{ */
void me_page_begin(me_str *page, const char *title);
void me_page_heading(me_str *page, const char *title);
/** A paragraph that explains. */
void me_page_note(me_str *page, const char *text);
/** Lines as they are, in a typewriter's letters. */
void me_page_lines(me_str *page, const char *lines);
/** As me_page_lines(), closed until the reader opens it. */
void me_page_details(me_str *page, const char *title, const char *lines);
/** As me_table_print(); rows of a tree are indented. */
me_status me_page_table(const me_table *table, me_str *page) ME_MUST_CHECK;
/** What belongs to one of the values of a chart's choice, and is hidden while
 *  another is chosen. @param is_shown  at first */
void me_page_part_begin(me_str *page, const char *value, bool is_shown);
void me_page_part_end(me_str *page);
/** The scripts; nothing may follow. */
void me_page_end(me_str *page);

/** @} */

enum {
    ME_CHART_COLUMNS_MAX = 32
};

/** The rows of a chart's data set, numbers and texts in the order of columns. They
 *  are packed, as page.js reads them: a number is the difference from the one
 *  above it, a text that was there before is its index among the texts, and a
 *  row ends with its last cell that differs. */
typedef struct me_chart_rows {
    me_str text; /**< of the rows, as JSON */
    uint64_t count;
    size_t column;                       /**< of the next cell */
    size_t kept;                         /**< of the text's length: up to the
                                              last cell that differs */
    uint64_t last[ME_CHART_COLUMNS_MAX]; /**< the number above */
    bool has_text[ME_CHART_COLUMNS_MAX]; /**< the column is one of texts */
    me_str texts;     /**< as they are written, each with a NUL behind it */
    uint32_t *starts; /**< where each begins; owned */
    uint32_t n_texts;
    uint32_t texts_capacity;
} me_chart_rows;

/** Begin and end a row; cells come between. Local. */
void me_chart_row_begin(me_chart_rows *rows);
void me_chart_row_end(me_chart_rows *rows);
/** A cell: a number, `null` if it is unknown, or any text, which may have several
 *  lines. Local. */
void me_chart_number(me_chart_rows *rows, uint64_t number);
void me_chart_integer(me_chart_rows *rows, int64_t number);
void me_chart_text(me_chart_rows *rows, const char *text);

/** Give the rows back. Local. */
void me_chart_rows_fini(me_chart_rows *rows);

/** A list from which the reader chooses one of a column's values, which becomes
 *  the value of the signal of that name; all NULL: none. */
typedef struct me_chart_choice {
    const char *column;
    const char *label; /**< before the list */
    const char *first; /**< that is chosen at first */
} me_chart_choice;

/** A chart: what it looks like, and what is in it. */
typedef struct me_chart {
    const char *spec;    /**< file of src/report/html, without its ending */
    const char *data;    /**< the data set's name there */
    const char *columns; /**< of the rows: `"x", "y"` */
    const me_chart_rows *rows;
    me_chart_choice choice;
    json_t *signals; /**< object: values of the specification's signals; the
                          chart takes it over; NULL: as they are */
} me_chart;

/**
 * Append a chart. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_INTERNAL for a specification that does
 *         not exist or has no such signal
 */
me_status me_page_chart(me_str *page, const me_chart *chart) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_PAGE_H */
