/**
 * @file
 * A job judged by the lowest rank of each pipeline stage alone: these give its
 * step, and its worst rank takes no less than the worst of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_SCREEN_H
#define MEMEST_RUN_SCREEN_H

#include "report/verdict.h"
#include "run/units.h"

/** Is asked after each stage but the last. */
typedef struct me_screen_watcher {
    /** NULL: all stages are simulated.
     *
     *  @param verdict  of the ranks so far, as if they were all
     *  @return false: that says enough */
    bool (*goes_on)(void *self, const me_verdict *verdict);
    void *self;
    me_units_done *done_out; /**< set on success to what was simulated, the
                                  caller's; NULL: nobody wants it */
} me_screen_watcher;

/** What they say of a whole job. */
typedef struct me_run_sight {
    me_verdict verdict; /**< of the ranks that ran */
    bool is_whole;      /**< all of them did */
    int64_t
        step_ns; /**< the job's very step; 0: it is not predicted, or not all
                          of them ran */
    uint64_t
        outside_bytes; /**< least that one holds beside its allocator; 0: not
                                 known */
} me_run_sight;

/**
 * Simulate the ranks, the ends of the pipeline first, which mostly hold most. For
 * units that nothing else simulates. Local.
 *
 * @param watcher  NULL: all stages are simulated
 * @return ME_OK; the engine's failure; ME_ERR_NOMEM
 */
me_status me_units_screen(me_units *units, const me_screen_watcher *watcher,
                          me_diag *diag, me_run_sight *sight_out) ME_MUST_CHECK;

#endif /* MEMEST_RUN_SCREEN_H */
