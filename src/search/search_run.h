/**
 * @file
 * A search: the candidates of a space enumerated, ruled out by proven bounds,
 * the rest simulated, and the front of what fits. What `memest search` prints.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SEARCH_RUN_H
#define MEMEST_SEARCH_SEARCH_RUN_H

#include "collectives/transport.h"
#include "run/job_run.h"
#include "search/front.h"

/** Is told, on process 0, of each candidate once it is decided by more than
 *  arithmetic: simulated, or refused when it was. */
typedef struct me_search_listener {
    /** @param done   candidates that are decided, of all @p count of them
     *  @return false: stop, and leave the rest undecided */
    bool (*decided)(void *self, const me_candidate *candidate, uint32_t done,
                    uint32_t count);
    /** NULL is allowed. What comes before the first candidate is decided, of
     *  this process; threads may call it at once.
     *  @param what   the steps are, such as "candidates weighed"; static
     *  @param begins  @p count of them begin; else one of them is done */
    void (*prepares)(void *self, const char *what, bool begins, uint32_t count);
    void *self;
} me_search_listener;

/** What is searched, and how. Texts are borrowed for the call. */
typedef struct me_search_request {
    me_space_request space;
    const char *const *schedules; /**< as --schedule takes them */
    size_t n_schedules;           /**< 0: what the degrees imply */
    bool strict;                  /**< what is not modelled is an error */
    uint32_t threads;             /**< of the host that simulate; 0: one */
    double budget_seconds;        /**< 0: none */
    const char *log_path;         /**< a log that is continued; NULL: none */
    me_search_listener listener;  /**< .decided NULL: nobody listens */
} me_search_request;

/** A row of the front with all that is printed of it. */
typedef struct me_search_row {
    me_front_row front;
    char *flags; /**< of the launch command; "": none; owned */
    me_run *run; /**< planned, not simulated: what it assumes and leaves out;
                      owned */
    me_transport *transport; /**< of it; owned */
} me_search_row;

/** What was found; on process 0. */
typedef struct me_search_found {
    const char *version; /**< of memest */
    const char *name;    /**< of the job */
    const me_candidates *candidates;
    uint32_t counts[ME_SEARCH_ENDS];
    uint64_t capacity_bytes;   /**< that bounds are held against; 0: none */
    uint32_t n_fit;            /**< of those that were simulated */
    uint32_t n_open;           /**< of them nobody can say whether they fit */
    const me_search_row *rows; /**< the front */
    uint32_t n_rows;
} me_search_found;

typedef struct me_search_run me_search_run;

/**
 * Search. Collective: every process returns the same status, and process 0 has
 * what was found, which is the same for any number of processes, unless a budget
 * or a listener ends it.
 *
 * @param job      read, not finished; borrowed for the call
 * @param run_out  owned by the caller
 * @return ME_OK; ME_ERR_CONFIG for a space that is none, one of which the
 *         framework refuses every candidate, or the log of another job;
 *         ME_ERR_SYNTAX, ME_ERR_IO for a log; ME_ERR_NOMEM, ME_ERR_MPI
 */
me_status me_search_run_create(me_transport *transport,
                               const me_search_request *request,
                               const me_config *job, me_diag *diag,
                               me_search_run **run_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_search_run_destroy(me_search_run *run);

/** What was found; borrowed. Of other processes than 0 without rows. Local. */
const me_search_found *me_search_run_found(const me_search_run *run);

#endif /* MEMEST_SEARCH_SEARCH_RUN_H */
