/**
 * @file
 * The report of `memest schedule`: a pipeline's order without a job. Times are
 * ticks, whatever the durations of its actions count.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_SCHEDULE_REPORT_H
#define MEMEST_REPORT_SCHEDULE_REPORT_H

#include "base/str.h"
#include "parallel/timeline.h"

/** What there is to say about an order. All of it is borrowed. */
typedef struct me_schedule_report {
    const char *name;    /**< of the schedule or file */
    const char *summary; /**< NULL: a file of the user's */
    const me_pipeline_order *order;
    const me_pipeline_order *shown; /**< the order, or with its transfers */
    const me_ticks *ticks;
    const me_timeline *timeline; /**< of the order */
} me_schedule_report;

/** For people: the counts of each rank, the course of time, the steps. */
void me_schedule_report_text(const me_schedule_report *report, me_str *text);

/**
 * The same as JSON: every rank's counts and its actions with their times.
 *
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_schedule_report_json(const me_schedule_report *report,
                                  me_diag *diag, me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_SCHEDULE_REPORT_H */
