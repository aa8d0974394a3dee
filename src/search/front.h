/**
 * @file
 * The Pareto front of a search: candidates that fit and that no other one
 * beats, which takes no longer a step, leaves no less room on the card and needs
 * no more GPUs, and is better in one of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_FRONT_H
#define MEMEST_SEARCH_FRONT_H

#include "search/candidates.h"

/** What candidates are held against each other by. */
typedef struct me_search_score {
    int64_t step_ns; /**< INT64_MAX where no step is predicted */
    int64_t
        room_bytes; /**< capacity less the worst rank; without a capacity the
                              bytes with their sign turned */
    int32_t world;
} me_search_score;

/** Of one that was simulated; its best of one that was not, on a card of
 *  @p capacity_bytes (0: not known). Local. */
me_search_score me_search_score_of(const me_candidate *candidate);
me_search_score me_search_score_bound(const me_candidate *candidate,
                                      uint64_t capacity_bytes);

/** What one that was simulated has for certain, to beat others by: of a step that
 *  takes at least so long, no time. Local. */
me_search_score me_search_score_sure(const me_candidate *candidate);

/** Is @p a better than @p b somewhere, and nowhere worse? Local. */
bool me_search_beats(const me_search_score *a, const me_search_score *b);

/** Is it simulated, and does it fit for certain? Local. */
bool me_candidate_fits(const me_candidate *candidate);

/** A row of the front. */
typedef struct me_front_row {
    const me_candidate *candidate; /**< borrowed */
    int32_t place; /**< by step time, from 1; 0: none is known, or a bound */
    bool is_tie;   /**< another has this place */
    bool is_equal; /**< another has these very numbers */
} me_front_row;

/**
 * The front, by step time, lower bounds of it behind the others, then room, GPUs
 * and the order of candidates. Places are given as those of `memest compare` are:
 * times of which the larger is less than ME_TIME_TIE above the fastest of a place
 * share it. Local.
 *
 * @param rows_out  owned by the caller, for me_free(); NULL where nothing fits
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_front_create(const me_candidates *candidates, me_diag *diag,
                          me_front_row **rows_out,
                          uint32_t *n_rows_out) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_FRONT_H */
