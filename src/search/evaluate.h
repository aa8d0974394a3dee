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
 * Simulate. Collective over @p transport, whose processes share the programs.
 *
 * @param transport  borrowed
 * @param options    of the run
 * @param result_out set on success, on process 0
 * @return ME_OK; what me_candidate_is_reason() calls one, with the reason in
 *         @p diag; ME_ERR_NOMEM, ME_ERR_IO
 */
me_status me_candidate_simulate(const me_candidate *candidate,
                                const me_config *job, me_transport *transport,
                                const me_run_options *options, me_diag *diag,
                                me_search_result *result_out) ME_MUST_CHECK;

/** As me_run_screen() of the candidate's job. Local.
 *  @return as me_candidate_simulate() */
me_status me_candidate_screen(const me_candidate *candidate,
                              const me_config *job, bool strict,
                              const me_screen_watcher *watcher, me_diag *diag,
                              me_run_sight *sight_out) ME_MUST_CHECK;

/** What the ends of the pipeline of its ME_PROBE_PLACE hold beside their
 *  allocators, at least; 0: not known. Local.
 *  @return as me_candidate_simulate() */
me_status me_candidate_outside(const me_candidate *candidate,
                               const me_config *job, me_diag *diag,
                               uint64_t *bytes_out) ME_MUST_CHECK;

/** What a report says, as a comparison judges it. Local.
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_search_result_of(const me_report *report, me_diag *diag,
                              me_search_result *result_out) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_EVALUATE_H */
