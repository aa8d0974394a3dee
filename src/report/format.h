/**
 * @file
 * The formats of a report, one source file each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_FORMAT_H
#define MEMEST_REPORT_FORMAT_H

#include "report/job_report.h"

#include <stdio.h>

/**
 * Print @p report to @p stream. Whether the stream took everything is for the
 * caller to ask it. Local.
 *
 * @param by_class  ranks of one class with equal results are one record, which
 *                  lists them, instead of one each
 * @return ME_OK, ME_ERR_NOMEM; JSON also ME_ERR_OVERFLOW; HTML also
 *         ME_ERR_INTERNAL, without Vega
 */
me_status me_json_print(const me_report *report, bool by_class, FILE *stream,
                        me_diag *diag) ME_MUST_CHECK;
me_status me_csv_print(const me_report *report, FILE *stream,
                       me_diag *diag) ME_MUST_CHECK;
me_status me_html_print(const me_report *report, FILE *stream,
                        me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_FORMAT_H */
