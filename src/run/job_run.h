/**
 * @file
 * One job from its configuration to its report: card, plan, the simulation of
 * this process's ranks, the check that all ranks agree, and the gathering.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_JOB_RUN_H
#define MEMEST_RUN_JOB_RUN_H

#include "collectives/transport.h"
#include "config/config.h"
#include "plan/plan.h"
#include "report/job_report.h"
#include "run/job_card.h"
#include "run/screen.h"
#include "run/simulate.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_PROBE_RANKS = 4 /**< at most, of me_run_probe() */
};

/** What is asked for beside the job; texts are borrowed as long as the run. */
typedef struct me_run_options {
    bool strict;         /**< what is not modelled is an error */
    bool no_fold;        /**< every rank and micro-batch runs by itself */
    bool keeps_course;   /**< see me_tracker_keep_course() */
    bool keeps_totals;   /**< alone, see me_tracker_keep_totals() */
    bool shows_progress; /**< on a terminal, see base/progress.h */
    uint32_t threads;    /**< of the host that simulate; 0: one */
    me_units_done *done; /**< what was simulated of this very job, taken over;
                                  NULL: nothing */
    const char *events_path; /**< NULL: no event log */
    int32_t events_rank;     /**< 0 if nobody asked */
    int32_t events_iteration;
} me_run_options;

typedef struct me_run me_run;

/**
 * Plan a job. Local: the processes have to agree on the status.
 *
 * @param config   a finished job; the run takes it over, on failure as well
 * @param run_out  owned by the caller
 * @return ME_OK; ME_ERR_CONFIG and what else a wrong job deserves; ME_ERR_NOMEM
 */
me_status me_run_create(me_transport *transport, me_config *config,
                        const me_run_options *options, me_diag *diag,
                        me_run **run_out) ME_MUST_CHECK;

/** Do all processes plan the same job? Collective; see me_plan_agree(). */
me_status me_run_agree(const me_run *run, me_diag *diag) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_run_destroy(me_run *run);

/** The job and what each rank holds of it; borrowed. Local. */
const me_config *me_run_config(const me_run *run);
const me_plan *me_run_plan(const me_run *run);
/** The card of its ranks; borrowed. Local. */
const me_job_card *me_run_card(const me_run *run);

/**
 * Simulate this process's ranks of @p n jobs in one go, on the threads of the
 * first. Local: what went wrong in a job is said by me_run_gather().
 *
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_runs_simulate(me_run *const *runs, uint32_t n,
                           me_diag *diag) ME_MUST_CHECK;

/**
 * Gather what the ranks took, once they are simulated. Collective: every
 * process returns the same status.
 *
 * @return ME_OK; the engine's failure; ME_ERR_MISMATCH for ranks that do not
 *         agree; ME_ERR_NOMEM, ME_ERR_IO, ME_ERR_MPI
 */
me_status me_run_gather(me_run *run, me_diag *diag) ME_MUST_CHECK;

/** Both, of one job. */
me_status me_run_simulate(me_run *run, me_diag *diag) ME_MUST_CHECK;

/** As me_simulate_traced() of a rank of the job. Local. */
me_status me_run_trace(const me_run *run, int32_t rank,
                       const me_trace_reader *reader,
                       me_diag *diag) ME_MUST_CHECK;

/** As me_units_screen(), of a run that nothing else simulates. Local. */
me_status me_run_screen(me_run *run, const me_screen_watcher *watcher,
                        me_diag *diag, me_run_sight *sight_out) ME_MUST_CHECK;

/**
 * Simulate the programs of some ranks alone, and judge these ranks as if they were
 * all: of a job that does not fit with them nobody has to know more. For a run that
 * nothing else simulates. Local.
 *
 * @param ranks  n_ranks of them, at most ME_PROBE_RANKS
 * @return ME_OK; the engine's failure; ME_ERR_NOMEM
 */
me_status me_run_probe(me_run *run, const int32_t *ranks, int32_t n_ranks,
                       me_diag *diag, me_verdict *verdict_out) ME_MUST_CHECK;

/** The report, borrowed; NULL before, and on other processes than 0. Local. */
const me_report *me_run_report(const me_run *run);

/** Put what would make the job fit into its report, where there is one; it is
 *  borrowed as long as the run. Local. */
void me_run_set_fit(me_run *run, const struct me_fit *fit);

#endif /* MEMEST_RUN_JOB_RUN_H */
