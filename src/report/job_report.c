/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/job_report.h"

#include "base/alloc.h"
#include "config/framework.h"
#include "report/gather_parts.h"

#include <stdio.h>

bool me_report_is_timed(const me_rates *rates, me_report *report)
{
    const char *untimed =
        me_framework_traits_of(report->config)->untimed(report->config);
    const char *reason = rates == NULL || !rates->is_known
                             ? "the card's rates are not known"
                             : untimed;
    if (reason != NULL) {
        (void)snprintf(report->time.reason, sizeof report->time.reason, "%s",
                       reason);
    }
    return reason == NULL;
}

int32_t me_report_lowest_rank(const me_report *report, uint32_t result)
{
    int32_t rank = 0;
    while (report->ranks[rank].result != result) {
        rank++;
    }
    return rank;
}

void me_report_destroy(me_report *report)
{
    if (report == NULL) {
        return;
    }
    for (uint32_t i = 0; !report->has_lent_results && i < report->n_results;
         i++) {
        me_rank_result_destroy(report->results[i]);
    }
    for (uint32_t i = 0; i < report->n_assumptions; i++) {
        me_free(report->assumptions[i]);
    }
    me_free(report->results);
    me_free(report->ranks);
    me_free(report->assumptions);
    me_free(report->version);
    me_step_time_destroy(report->time.step);
    me_free(report);
}
