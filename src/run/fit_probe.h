/**
 * @file
 * Changes of a job, tried on the ranks that matter: the one that was worst, and
 * the first and the last. Whatever number of processes there is, each tries all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_FIT_PROBE_H
#define MEMEST_RUN_FIT_PROBE_H

#include "base/progress.h"
#include "run/fit_changes.h"

#include <stdbool.h>
#include <stdint.h>

/** What all changes are held against. All borrowed. */
typedef struct me_fit_base {
    const me_config *job;      /**< as read, not finished */
    const me_config *finished; /**< the same */
    int32_t worst_rank;
    bool strict;
    bool shows_progress;
    const char *tried;    /**< what the trials are, for who waits; static */
    me_progress progress; /**< of all that are tried: the time goes on */
    uint32_t threads;
} me_fit_base;

typedef enum me_fit_end {
    ME_FIT_REFUSED, /**< no such job, or another batch or world */
    ME_FIT_OVER,    /**< does not fit */
    ME_FIT_OPEN     /**< the ranks that were looked at fit */
} me_fit_end;

/** A change and what came of it. */
typedef struct me_fit_trial {
    me_fit_change change;
    me_fit_end end;
    uint64_t bytes; /**< of the rank that was worst */
    int32_t n_classes;
    me_status status; /**< not ME_OK: a failure of ours, with diag */
    me_diag diag;
} me_fit_trial;

/**
 * Try the changes, on all threads. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_fit_probe(me_fit_base *base, me_fit_trial *trials,
                       int32_t n_trials, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_RUN_FIT_PROBE_H */
