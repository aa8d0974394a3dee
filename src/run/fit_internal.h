/**
 * @file
 * What the files of the search for what makes a job fit share; nobody else
 * includes it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_FIT_INTERNAL_H
#define MEMEST_RUN_FIT_INTERNAL_H

#include "run/compare_run.h"
#include "run/fit_probe.h"
#include "run/fit_run.h"

/** How many changes are tried, and simulated as a whole. */
typedef struct me_fit_bounds {
    int32_t singles;
    int32_t pairs;
    int32_t together; /**< changes at most, where no pair helps */
    int32_t whole;    /**< changes */
    int32_t classes;  /**< of ranks, of all of those; the first ones count
                           whatever they have */
} me_fit_bounds;

/** One process's part of a search; what is NULL is not made yet. */
struct me_fit_run {
    me_transport *transport;
    me_fit_request request;
    me_fit_bounds bounds;
    me_fit_base base;
    const me_report *base_report; /**< borrowed; on process 0 */
    bool host_is_short;           /**< the job keeps more there than it has */
    uint64_t base_bytes;
    uint64_t excess_bytes; /**< over what there is */
    me_fit_trial *singles;
    int32_t n_singles;
    me_fit_trial pair; /**< of two changes, the one that takes least */
    bool has_pair;
    me_compare_run *whole; /**< the changes that were simulated as a whole */
    me_str *flags;         /**< of each offer */
    me_fit_offer *offers;
    me_fit fit;
    bool has_searched;
    char closest[ME_VARIANT_NAME];
};

/** What process 0 knows all know afterwards. Collective.
 *
 *  @return ME_OK, ME_ERR_MPI, ME_ERR_NOMEM */
me_status me_fit_from_first(me_transport *transport, void *bytes, size_t size,
                            me_diag *diag) ME_MUST_CHECK;

/** ME_ERR_NOMEM, with its reason. Local. */
me_status me_fit_no_memory(me_diag *diag);

/** @name fit_whole.c
 *  @{ */
/**
 * Try changes on the ranks that matter, and simulate the first of those that may
 * fit as a whole; those that do are the search's offers. Collective.
 *
 * @param trials     n of them, with their changes; what came of them is filled in
 * @param found_out  is there an offer?
 * @return ME_OK; ME_ERR_NOMEM, ME_ERR_IO, ME_ERR_MPI
 */
me_status me_fit_try(me_fit_run *run, me_fit_trial *trials, int32_t n,
                     me_diag *diag, bool *found_out) ME_MUST_CHECK;

/** @} */

/** Two changes, and what they are expected to save together. */
typedef struct me_fit_pair {
    int32_t a;
    int32_t b;
    uint64_t saved_bytes;
    bool is_promising; /**< that would be enough */
} me_fit_pair;

/** Pairs of changes that both save something, in the order in which they are
 *  tried. Local. @param pairs  room for all pairs of changes  @return how many */
int32_t me_fit_pairs_make(const me_fit_run *run, me_fit_pair *pairs);

/** @name fit_pairs.c: as me_fit_try(), of several of the single changes together
 *  @{ */
/** Two. */
me_status me_fit_try_pairs(me_fit_run *run, me_diag *diag,
                           bool *found_out) ME_MUST_CHECK;
/** As many as the bounds allow, one after the other. */
me_status me_fit_try_more(me_fit_run *run, me_diag *diag,
                          bool *found_out) ME_MUST_CHECK;
/** @} */

#endif /* MEMEST_RUN_FIT_INTERNAL_H */
