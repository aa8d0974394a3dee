/**
 * @file
 * Could the ranks run the sends and receives of an order, and what it does to
 * parameters?
 *
 * NCCL knows no tags: between two ranks the k-th send meets the k-th receive.
 * A rank's transfers share one communicator and stream, so that one begins
 * when the one before it has met its other side, and after all that was
 * computed before it (PyTorch: batch_isend_irecv()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SCHEDULE_CHECK_H
#define MEMEST_PARALLEL_SCHEDULE_CHECK_H

#include "parallel/pipeline_order.h"

/**
 * Has every tensor that crosses ranks one send after the action that makes it
 * and one receive before the action that needs it, and no other? Do the k-th
 * send and receive of two ranks belong together, and does no rank wait for
 * ever?
 *
 * @param order  passes me_pipeline_order_check(); with batches, as
 *               me_megatron_order_create() makes them, each rank is looked at
 *               for itself: me_timeline_create_blocking() runs them
 * @return ME_OK; ME_ERR_CONFIG with ranks and actions, for ranks that wait for
 *         each other the cycle; ME_ERR_NOMEM
 */
me_status me_pipeline_order_check_transfers(const me_pipeline_order *order,
                                            me_diag *diag) ME_MUST_CHECK;

/**
 * What _PipelineScheduleRuntime asserts of a stage of fully_shard that has an
 * UNSHARD or RESHARD: it is whole wherever it computes, is gathered once before
 * it is released, and released once it was used. And REDUCE_GRAD stands once
 * and behind the last backward of its stage.
 *
 * @param order  passes me_pipeline_order_check()
 * @return ME_OK; ME_ERR_CONFIG with rank and action; ME_ERR_NOMEM
 */
me_status me_pipeline_order_check_parameters(const me_pipeline_order *order,
                                             me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_PARALLEL_SCHEDULE_CHECK_H */
