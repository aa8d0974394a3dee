/**
 * @file
 * The order of Megatron-LM's own pipeline functions with the sends and
 * receives that they make (schedules.py at core_v0.19.0, transfers not
 * overlapped): in batches, each of which is waited for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_MEGATRON_ORDER_H
#define MEMEST_PARALLEL_MEGATRON_ORDER_H

#include "parallel/pipeline_order.h"

/**
 * The order of all ranks of 1f1b, or with several chunks of interleaved; for
 * me_timeline_create_blocking().
 *
 * @param pipeline   its rank does not matter
 * @param order_out  to be destroyed by the caller
 * @return ME_OK; ME_ERR_CONFIG as me_schedule_check(); ME_ERR_NOMEM
 */
me_status me_megatron_order_create(const me_pipeline *pipeline, me_diag *diag,
                                   me_pipeline_order **order_out) ME_MUST_CHECK;

#endif /* MEMEST_PARALLEL_MEGATRON_ORDER_H */
