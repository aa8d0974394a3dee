/**
 * @file
 * What SACEstimator prints and what the integer programme of selective checkpoints
 * decides, as text and JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_SAC_H
#define MEMEST_REPORT_SAC_H

#include "base/str.h"
#include "sac/ilp.h"
#include "track/sac_estimator.h"

/** How to print what SACEstimator knows. */
typedef struct me_sac_format {
    uint32_t depth; /**< modules up to this many names deep */
    bool tabulates; /**< tables in the text */
    bool
        has_policy; /**< and which operations a module saves that may keep a part
                          of its memory */
    double budget;  /**< that part */
} me_sac_format;

/** display_modulewise_sac_stats(), each module with its policy if there is one.
 *  @return ME_OK; ME_ERR_CONFIG for a budget outside of 0 to 1; ME_ERR_NOMEM */
me_status me_sac_append(me_str *text, const me_sac_estimator *s,
                        const me_sac_format *format,
                        me_diag *diag) ME_MUST_CHECK;

/** Operations, trade-off and fit of each module, and its policy. @return as
 *  me_sac_append() */
me_status me_sac_json_append(me_str *text, const me_sac_estimator *s,
                             const me_sac_format *format,
                             me_diag *diag) ME_MUST_CHECK;

/** Whom the programme chose, what that costs and what it saves. */
void me_ilp_append(me_str *text, const me_sac_graph *graph,
                   const me_sac_request *request,
                   const me_sac_solution *solution);

/** The same, bytes exact. @return ME_OK; ME_ERR_NOMEM */
me_status me_ilp_json_append(me_str *text, const me_sac_graph *graph,
                             const me_sac_request *request,
                             const me_sac_solution *solution) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_SAC_H */
