/**
 * @file
 * A candidate simulated: the numbers of its row in `memest compare`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_EVALUATE_H
#define MEMEST_SEARCH_EVALUATE_H

#include "run/job_run.h"
#include "search/candidates.h"

/**
 * Simulate, on the calling thread. Local.
 *
 * @param transport  of one process; borrowed
 * @param strict     what is not modelled is an error
 * @param result_out set on success
 * @return ME_OK; what me_candidate_is_reason() calls one, with the reason in
 *         @p diag; ME_ERR_NOMEM, ME_ERR_IO
 */
me_status me_candidate_simulate(const me_candidate *candidate,
                                const me_config *job, me_transport *transport,
                                bool strict, me_diag *diag,
                                me_search_result *result_out) ME_MUST_CHECK;

/** As me_run_screen() of the candidate's job. Local.
 *  @return as me_candidate_simulate() */
me_status me_candidate_screen(const me_candidate *candidate,
                              const me_config *job, bool strict, me_diag *diag,
                              me_run_sight *sight_out) ME_MUST_CHECK;

/** What a report says, as a comparison judges it. Local.
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_search_result_of(const me_report *report, me_diag *diag,
                              me_search_result *result_out) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_EVALUATE_H */
