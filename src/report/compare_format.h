/**
 * @file
 * The formats of a comparison, one source file each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_COMPARE_FORMAT_H
#define MEMEST_REPORT_COMPARE_FORMAT_H

#include "report/comparison.h"
#include "report/table.h"

/** What is printed. All borrowed. */
typedef struct me_compare_print {
    const me_comparison *comparison;
    const me_compare_line *lines; /**< n_rows of the comparison */
    bool has_course;
} me_compare_print;

/**
 * Append the comparison. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM; JSON also ME_ERR_OVERFLOW
 */
me_status me_compare_text(const me_compare_print *print,
                          me_str *text) ME_MUST_CHECK;
me_status me_compare_json(const me_compare_print *print,
                          me_str *text) ME_MUST_CHECK;
me_status me_compare_csv(const me_compare_print *print,
                         me_str *text) ME_MUST_CHECK;
me_status me_compare_html(const me_compare_print *print,
                          me_str *page) ME_MUST_CHECK;

/** The table of lines; the one of stages. Local. */
me_status me_compare_lines_table(const me_compare_print *print,
                                 me_table_printer printer,
                                 me_str *text) ME_MUST_CHECK;
me_status me_compare_stages_table(const me_compare_print *print,
                                  me_table_printer printer,
                                  me_str *text) ME_MUST_CHECK;

/** The sentences that explain the order and its ties. Local. */
void me_compare_explain(const me_compare_print *print, me_str *text);

/** What settings leave out and assume, each once; nothing where there is
 *  nothing. Local. */
void me_compare_notes(const me_comparison *comparison, me_str *text);

/** "schedule" or "schedule, variant". Local. */
void me_compare_title(const me_compare_row *row, me_str *text);

#endif /* MEMEST_REPORT_COMPARE_FORMAT_H */
