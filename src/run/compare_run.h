/**
 * @file
 * One job under several schedules and settings, each simulated: what
 * `memest compare` prints and what the library's memest_compare() gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_COMPARE_RUN_H
#define MEMEST_RUN_COMPARE_RUN_H

#include "collectives/transport.h"
#include "config/config.h"
#include "report/comparison.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is compared; see run/variant.h for the texts, which are borrowed for
 *  the call that they are given to. */
typedef struct me_compare_request {
    const char *const *schedules; /**< n_schedules of them */
    size_t n_schedules;           /**< 0: the job's own */
    const char *const *variants;  /**< beside the job as it is */
    size_t n_variants;
    bool leaves_job_out;   /**< the variants alone; none of them is at fault for
                                being wrong */
    const char *durations; /**< fixed ones, "F=1,I=1"; NULL: times are
                                predicted */
    bool strict;           /**< what is not modelled is an error */
    bool shows_progress;   /**< on a terminal, see base/progress.h */
    bool no_fold;          /**< every rank and micro-batch runs by itself */
    uint32_t threads;      /**< of the host that simulate; 0: one */
} me_compare_request;

typedef struct me_compare_run me_compare_run;

/**
 * Read what is to be compared. Local: the processes have to agree.
 *
 * @param run_out  owned by the caller
 * @return ME_OK; ME_ERR_CONFIG for a text that is none, or nothing to compare;
 *         ME_ERR_NOMEM
 */
me_status me_compare_run_create(me_transport *transport,
                                const me_compare_request *request,
                                me_diag *diag,
                                me_compare_run **run_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_compare_run_destroy(me_compare_run *run);

/**
 * Simulate all settings. One that cannot run is a row with its reason; what is
 * wrong with all of them alike is a failure. Collective: every process returns
 * the same status.
 *
 * @param job  read, not finished; borrowed for the call
 * @return ME_OK; ME_ERR_CONFIG; ME_ERR_NOMEM, ME_ERR_IO, ME_ERR_MPI
 */
me_status me_compare_run_all(me_compare_run *run, const me_config *job,
                             me_diag *diag) ME_MUST_CHECK;

/** The rows in the order in which they were asked for, those of a variant
 *  together; borrowed. Without rows before me_compare_run_all(), and on other
 *  processes than 0. Local. */
const me_comparison *me_compare_run_comparison(const me_compare_run *run);

/** The exit code of --require-fit: that of the best of them. Process 0 knows.
 *  Local. */
int me_compare_run_exit_code(const me_compare_run *run);

#endif /* MEMEST_RUN_COMPARE_RUN_H */
