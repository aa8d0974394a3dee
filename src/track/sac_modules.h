/**
 * @file
 * What MemTracker, RuntimeEstimator and SACEstimator saw of each module, put
 * together for the integer programme of src/sac, as aggregate_stats() of
 * torch/distributed/_tools/ilp_utils.py does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_SAC_MODULES_H
#define MEMEST_TRACK_SAC_MODULES_H

#include "sac/graph.h"
#include "track/mem_tracker.h"
#include "track/runtime_estimator.h"
#include "track/sac_estimator.h"

/**
 * The graph of the modules that ran forward and backward in the iteration that
 * all three kept.
 *
 * @param mem        of the iteration, with `as_memtracker`
 * @param graph_out  to be destroyed by the caller; names are the ModTracker's
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_CONFIG where a module ran forward alone,
 *         which has no backward that the programme could weigh
 */
me_status me_sac_modules_collect(const me_mem_tracker *mem,
                                 const me_runtime_estimator *runtime,
                                 const me_sac_estimator *sac, me_diag *diag,
                                 me_sac_graph **graph_out) ME_MUST_CHECK;

#endif /* MEMEST_TRACK_SAC_MODULES_H */
