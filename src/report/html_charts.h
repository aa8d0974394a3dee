/**
 * @file
 * The charts of a report's page, with the pipeline's stages under each other.
 * A stage is shown by the rank of it that requests most.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_HTML_CHARTS_H
#define MEMEST_REPORT_HTML_CHARTS_H

#include "report/job_report.h"
#include "report/page.h"

/** End a row with a part of a course: name, chunk, micro-batch, what is
 *  requested when it begins, at most and when it ends, the most reserved. */
void me_chart_part(me_chart_rows *rows, const me_course_part *part);

/**
 * Append a chart: bytes by category at the peak of each stage; the memory of a rank
 * that the reader picks over the steady iteration, if its course was kept, with the
 * tensors at its peak; what each stage's tensor ranks take, with a heading, where
 * there are many. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM; ME_ERR_INTERNAL for a chart that is not there
 */
me_status me_html_peaks(const me_report *report, me_str *page) ME_MUST_CHECK;
me_status me_html_memory(const me_report *report, me_str *page) ME_MUST_CHECK;
me_status me_html_heat(const me_report *report, me_str *page) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_HTML_CHARTS_H */
