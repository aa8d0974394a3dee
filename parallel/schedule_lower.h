/**
 * @file
 * The sends and receives of an order, placed as PyTorch's runtime places them.
 *
 * Ranks are looked at in turn, again and again; each runs at most one action
 * in a turn, if its inputs are there. After an action stands the send of what
 * it made, and the receive goes at once to the end of the other rank's list. A
 * tensor for a stage on the same rank is handed over without either.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SCHEDULE_LOWER_H
#define MEMEST_PARALLEL_SCHEDULE_LOWER_H

#include "parallel/pipeline_order.h"

/**
 * The order with its sends and receives. In each pair of ranks the k-th send
 * matches the k-th receive, and the lists end even if sends wait for their
 * receives.
 *
 * @param order       passes me_pipeline_order_check(); one that has sends or
 *                    receives already is copied as it is
 * @param lowered_out to be destroyed by the caller
 * @return ME_OK; ME_ERR_CONFIG if ranks wait for each other for ever;
 *         ME_ERR_NOMEM
 */
me_status
me_pipeline_order_lower(const me_pipeline_order *order, me_diag *diag,
                        me_pipeline_order **lowered_out) ME_MUST_CHECK;

/**
 * The same as PyTorch 2.11's _PipelineScheduleRuntime lowers it: with UNSHARD
 * and RESHARD so that a rank's next three stages are whole, and REDUCE_GRAD
 * behind a stage's last backward. These take turns too, so that receives may
 * stand elsewhere.
 *
 * @param order  as of me_pipeline_order_lower(); only what computes
 */
me_status
me_pipeline_order_lower_torch(const me_pipeline_order *order, me_diag *diag,
                              me_pipeline_order **lowered_out) ME_MUST_CHECK;

#endif /* MEMEST_PARALLEL_SCHEDULE_LOWER_H */
