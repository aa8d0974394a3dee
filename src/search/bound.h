/**
 * @file
 * Lower bounds of a candidate that need no simulation of it, each proven: what the
 * simulated job takes at most is never less, and its step never shorter. A
 * property test holds them to that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_BOUND_H
#define MEMEST_SEARCH_BOUND_H

#include "run/job_card.h"
#include "search/candidates.h"
#include "search/probe.h"

/**
 * The bounds of a finished job, the nearer if its layers were probed. Where
 * something is not modelled that may lower its memory, or the card has no rates,
 * there is none. Local.
 *
 * @param probe  NULL: they were not
 */
me_search_bound me_search_bound_of(const me_config *config,
                                   const me_job_card *card,
                                   const me_probe *probe);

#endif /* MEMEST_SEARCH_BOUND_H */
