/**
 * @file
 * What would make a job fit: changes of it that were simulated and fit, beside
 * how many were tried and what became of the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_FIT_H
#define MEMEST_REPORT_FIT_H

#include "report/job_report.h"
#include "report/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A change with which the job fits. All borrowed. */
typedef struct me_fit_offer {
    const char *name;        /**< "micro-batch 1" */
    const char *assignments; /**< "KEY=VALUE,…" */
    const char *flags;       /**< to paste into the launch command; of a job
                                  without one, memest's --set */
    const me_report *report; /**< of the job with it */
    bool changes_numerics;   /**< losses come out otherwise */
    int32_t place; /**< by step time, from 1; ties have the same; 0: the time
                        is not predicted, or a lower bound */
    bool is_tie;   /**< another has this place, too */
} me_fit_offer;

/** The changes, in the order of predicted step time; where that is not known, of
 *  what they usually cost. All borrowed. */
typedef struct me_fit {
    const me_fit_offer *offers;
    size_t n_offers;
    int32_t n_together;  /**< changes that each offer is made of; 0: none */
    int32_t n_tried;     /**< all that follow, and the offers */
    int32_t n_refused;   /**< by the framework, or another batch would be run */
    int32_t n_over;      /**< do not fit either */
    int32_t n_equal;     /**< do the same as one that is offered */
    int32_t n_left;      /**< may fit, and were not simulated as a whole */
    const char *closest; /**< that takes least, where there is no offer; NULL */
    uint64_t closest_bytes; /**< of the rank that is worst without it */
} me_fit;

/** Its table alone, as @p print writes tables, and the notes below it. Local.
 *
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_fit_table(const me_report *report, size_t most,
                       me_table_printer print, me_str *text) ME_MUST_CHECK;

/** How the offers are ordered, what equal places are, and times that are lower
 *  bounds: ", the fastest first (= is a tie; >= has no place)". Local. */
void me_fit_order_append(const me_fit *fit, me_str *text);

/** A section of the text report, with an empty line and a title. Local.
 *
 *  @param most  offers that are shown; 0: all
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_fit_text(const me_report *report, size_t most,
                      me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_FIT_H */
