/**
 * @file
 * The search for what would make a job fit: changes of it (run/fit_changes.h), each
 * simulated exactly, single ones first, then pairs, then more together. Most of
 * those that do not help are told by a few ranks; what is offered was simulated
 * as a whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_FIT_RUN_H
#define MEMEST_RUN_FIT_RUN_H

#include "report/fit.h"
#include "run/job_run.h"

/** How far the search goes. */
typedef struct me_fit_request {
    bool strict;         /**< what is not modelled is an error */
    bool is_quick;       /**< as many simulations as `check` has time for */
    bool shows_progress; /**< on a terminal, see base/progress.h */
    uint32_t threads;    /**< of the host that simulate; 0: one */
} me_fit_request;

typedef struct me_fit_run me_fit_run;

/**
 * Search, if the job does not fit: else, and where nobody can say, nothing is
 * tried. What is found does not depend on the number of processes. Collective.
 *
 * @param job      as read, not finished; borrowed for the call
 * @param base     that job, simulated; borrowed for the call
 * @param run_out  owned by the caller; the base's report may borrow from it
 * @return ME_OK; ME_ERR_NOMEM, ME_ERR_IO, ME_ERR_MPI
 */
me_status me_fit_run_create(me_transport *transport, const me_config *job,
                            const me_run *base, const me_fit_request *request,
                            me_diag *diag, me_fit_run **run_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_fit_run_destroy(me_fit_run *run);

/** What was found, borrowed; NULL where nothing was looked for, and on other
 *  processes than 0. Local. */
const me_fit *me_fit_run_result(const me_fit_run *run);

#endif /* MEMEST_RUN_FIT_RUN_H */
