/**
 * @file
 * PyTorch's SACEstimator (torch/distributed/_tools/sac_estimator.py), as it
 * listens: the operations of each module's forward, with what they take and
 * what their results hold. What follows from them is of src/sac.
 *
 * Modules without children have no statistics of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_SAC_ESTIMATOR_H
#define MEMEST_TRACK_SAC_ESTIMATOR_H

#include "sac/stats.h"
#include "time/roofline.h"
#include "track/mod_tracker.h"

typedef struct me_sac_estimator me_sac_estimator;

/**
 * An estimator on the program of @p e, before it runs; of the last forward of
 * each module in iteration @p iteration.
 *
 * @param mod       names modules and knows which run; outlives it
 * @param roofline  copied
 * @return owned by the caller; NULL without memory
 */
me_sac_estimator *me_sac_estimator_create(me_engine *e, me_mod_tracker *mod,
                                          const me_roofline *roofline,
                                          int32_t iteration);

/** Give back; NULL is allowed. */
void me_sac_estimator_destroy(me_sac_estimator *s);

/** Statistics of modules in the order in which their forwards first ended;
 *  borrowed. */
const me_sac_stats *me_sac_estimator_modules(const me_sac_estimator *s,
                                             uint32_t *count_out);

/** One module's; NULL: it has none. */
const me_sac_stats *me_sac_estimator_module(const me_sac_estimator *s,
                                            const char *fqn);

#endif /* MEMEST_TRACK_SAC_ESTIMATOR_H */
