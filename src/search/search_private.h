/**
 * @file
 * A search under way, for the files that it is made of.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SEARCH_PRIVATE_H
#define MEMEST_SEARCH_SEARCH_PRIVATE_H

#include "search/probe.h"
#include "search/search_run.h"

#include <stdio.h>

enum {
    /** Candidates whose screens a process keeps: a matter of memory alone. */
    ME_SEARCH_KEPT = 32
};

/** What a screen has simulated of a candidate. */
typedef struct me_search_kept {
    uint32_t index; /**< of the candidate */
    me_units_done done;
} me_search_kept;

/** One process's part of a search; what is NULL is not made yet. */
struct me_search_run {
    me_transport *transport;
    me_search_request request;
    const me_config *job; /**< read, not finished; borrowed while it runs */
    me_schedule_choice *choices;
    me_space *space;
    me_candidates candidates;
    me_probes probes[ME_PROBE_KINDS];
    FILE *log; /**< of process 0; NULL: none is asked for */
    char log_path[1024];
    uint32_t *order;  /**< of candidates, by their bounds */
    uint32_t n_order; /**< that are neither refused nor too large */
    uint32_t *fits;   /**< of them, that are known to fit; owned */
    uint32_t n_fits;
    me_search_kept kept[ME_SEARCH_KEPT]; /**< n_kept of them; owned */
    uint32_t n_kept;
    uint64_t capacity_bytes; /**< that bounds are held against; 0: none */
    bool has_bounds;         /**< all candidates are of one card */
    me_job_card card;
    me_search_row *rows; /**< owned */
    uint32_t n_rows;
    double began; /**< seconds on process 0's clock */
    uint32_t n_done;
    me_search_found found;
    char name[ME_VARIANT_NAME]; /**< of the job */
};

enum {
    /** Candidates that are simulated before the next are ruled out: the same for
     *  any number of processes, so that what is ruled out is the same. */
    ME_SEARCH_BATCH = 16
};

/** What became of a candidate of a batch. */
typedef struct me_search_outcome {
    me_status status;
    me_diag diag;
    me_search_result result;
    me_search_bound bound; /**< of a screen */
    bool is_over;          /**< likewise: it does not fit */
    me_units_done done;    /**< likewise: of one that this process did; owned */
} me_search_outcome;

/** A batch that this process has its part of. */
typedef struct me_search_batch {
    const me_search_run *search;
    uint32_t indices[ME_SEARCH_BATCH];
    uint32_t count;
    me_search_outcome outcomes[ME_SEARCH_BATCH];
    bool is_screen; /**< the ranks that stand for stages alone */
} me_search_batch;

/** Has a log shown what it will be? Local. */
bool me_search_is_known(const me_search_run *run, uint32_t index);

/** Is it this process's candidate of a batch, or probe? Local. */
bool me_search_is_mine(const me_search_run *run, uint32_t task);

/** Is the time over that there is? Local. */
bool me_search_is_late(const me_search_run *run);

/**
 * Give every process what all did of a batch, and process 0's word on the time.
 * Collective.
 *
 * @param stops_out  set where the search has to stop; else left as it is
 * @return ME_OK; ME_ERR_NOMEM, ME_ERR_MPI
 */
me_status me_search_exchange(me_search_run *run, const me_search_batch *batch,
                             me_diag *diag, bool *stops_out) ME_MUST_CHECK;

/** Keep what a screen has simulated until its candidate is, taken over; where that
 *  is too much, what would be needed last goes. Local. */
void me_search_keep(me_search_run *run, uint32_t index, me_units_done *done);

/** What was kept of a candidate, the caller's from now on; all zero: nothing.
 *  Local. */
me_units_done me_search_kept_of(me_search_run *run, uint32_t index);

/** Seconds of a clock that only goes forward; for the budget. Local. */
double me_search_seconds(void);

/** Tell the listener of what is prepared (search/search_run.h). Local. */
void me_search_prepares(const me_search_run *run, const char *what, bool begins,
                        uint32_t count);

/**
 * Run the probes that bounds are made nearer by, each on one process. Collective.
 *
 * @return ME_OK; ME_ERR_NOMEM, ME_ERR_MPI
 */
me_status me_search_probe(me_search_run *run, me_probes *probes,
                          me_diag *diag) ME_MUST_CHECK;

/**
 * Take from the log what an earlier search has done, and open it to go on.
 * Collective.
 *
 * @return ME_OK; as the functions of search/search_log.h; ME_ERR_MPI
 */
me_status me_search_continue(me_search_run *run, me_diag *diag) ME_MUST_CHECK;

/**
 * Simulate what no bound rules out, batch by batch, until all is decided or time
 * is up. Collective.
 *
 * @return ME_OK; ME_ERR_CONFIG for a file of a candidate's that cannot be read;
 *         ME_ERR_NOMEM, ME_ERR_MPI
 */
me_status me_search_decide(me_search_run *run, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_SEARCH_PRIVATE_H */
