/**
 * @file
 * The programs of a job that are simulated, each for the ranks of a class or
 * for one rank: which process does which, on how many threads, and what came
 * of them. Programs know nothing of each other, so those of several jobs can
 * be simulated in one go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_UNITS_H
#define MEMEST_RUN_UNITS_H

#include "collectives/digest_map.h"
#include "run/simulate.h"
#include "run/twin.h"

#include <stdatomic.h>

/** How simulating a unit ended. */
typedef struct me_unit_end {
    me_status status;
    me_diag diag;
    uint64_t n_events;
    double seconds;         /**< of CPU */
    bool differs_from_twin; /**< or may: see me_simulation */
} me_unit_end;

/** A unit that was simulated. */
typedef struct me_unit_done {
    int32_t unit;
    me_call_log *log;       /**< NULL: another one stood for it; owned */
    me_rank_result *result; /**< owned */
    me_unit_end end;
} me_unit_done;

/** Units of a job that were simulated, for others of the same job, so that these
 *  need not be simulated again. All zero is none. */
typedef struct me_units_done {
    me_unit_done *items; /**< owned */
    uint32_t count;
    int32_t n_units;     /**< of the job */
    bool shares_results; /**< see me_units */
} me_units_done;

/** All zero is none. */
typedef struct me_units {
    me_simulation simulation;
    int32_t count;       /**< over all processes */
    bool are_classes;    /**< each is a class of the plan, else a rank */
    bool shares_results; /**< of twins, where they are classes */
    int32_t strands_max; /**< of a lead's, that are simulated in one go; 0: each
                              unit by itself */
    int process;         /**< this one, of n_processes */
    int n_processes;
    me_twin *twins;           /**< of each; owned, as what follows */
    me_call_log **logs;       /**< of this process's units, else NULL */
    int32_t *log_unit;        /**< whose log a unit shares, or itself */
    me_rank_result **results; /**< likewise; NULL: its twin's is used */
    me_unit_end *ends;
    me_digest_map programs;   /**< of logs so far, and which unit's is kept */
    atomic_flag is_looked_up; /**< `programs` and what follows */
    int32_t n_seen;           /**< logs so far */
    uint64_t n_calls;         /**< of those that are different */
    atomic_int first_failed;  /**< the lowest so far; `count`: none */
    uint64_t n_events;        /**< of this process's */
    double seconds;           /**< of CPU that they took */
} me_units;

/**
 * Allocate the lists; the members above `twins` have been filled in. Local.
 *
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_units_init(me_units *units, me_diag *diag) ME_MUST_CHECK;

/** Give back. Local. */
void me_units_fini(me_units *units);

/**
 * Simulate this process's units of @p n jobs. Local.
 *
 * @param jobs     in the order in which their units begin; borrowed
 * @param threads  of this host
 * @param shows_progress  on a terminal, see base/progress.h
 */
void me_units_run(me_units *const *jobs, uint32_t n, uint32_t threads,
                  bool shows_progress);

/**
 * Simulate one unit by itself, whosever it is, unless that was done. Local.
 *
 * @return ME_OK, or its failure
 */
me_status me_units_run_one(me_units *units, int32_t unit,
                           me_diag *diag) ME_MUST_CHECK;

/** Move what was simulated out of units that are not needed any more; without
 *  memory nothing is kept. Local. */
void me_units_keep(me_units *units, me_units_done *done_out);

/** Move what was kept into the units of the same job with the same options, those
 *  that this process simulates; the rest is given back. Local. */
void me_units_take(me_units *units, me_units_done *done);

/** Give back. Local. */
void me_units_done_fini(me_units_done *done);

/**
 * After they have run. Local.
 *
 * @return ME_OK, or the first failure in the order of units, which is always
 *         the same: those before one that failed have been simulated too
 */
me_status me_units_join(me_units *units, me_diag *diag) ME_MUST_CHECK;

/**
 * The log of a unit once more, of which the calls were dropped. Local.
 *
 * @param log_out  owned by the caller
 * @return ME_OK, or why the unit cannot be simulated
 */
me_status me_units_remake_log(const me_units *units, int32_t unit,
                              me_diag *diag,
                              me_call_log **log_out) ME_MUST_CHECK;

/** Does this process simulate the unit? Local. */
bool me_units_is_mine(const me_units *units, int32_t unit);

/** What the unit's ranks took; borrowed. Local. */
me_rank_result *me_units_result(const me_units *units, int32_t unit);

#endif /* MEMEST_RUN_UNITS_H */
