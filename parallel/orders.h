/**
 * @file
 * The rows of the table of schedules, and what the files that define them
 * share. For parallel/schedule.c and parallel/order_*.c only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_ORDERS_H
#define MEMEST_PARALLEL_ORDERS_H

#include "parallel/schedule.h"

#include <stdint.h>

/** X(row): every schedule, in the order in which help lists them. */
#define ME_ORDER_LIST(X)                                                       \
    X(me_order_none)                                                           \
    X(me_order_1f1b)                                                           \
    X(me_order_interleaved)                                                    \
    X(me_order_interleaved_torch)                                              \
    X(me_order_gpipe)                                                          \
    X(me_order_looped_bfs)                                                     \
    X(me_order_zbh1)                                                           \
    X(me_order_zbh2)                                                           \
    X(me_order_interleaved_zb)                                                 \
    X(me_order_zbv)                                                            \
    X(me_order_vhalf)                                                          \
    X(me_order_vmin)                                                           \
    X(me_order_zb_auto)                                                        \
    X(me_order_v_auto)                                                         \
    X(me_order_dualpipev)                                                      \
    X(me_order_dualpipe)                                                       \
    X(me_order_chimera)

#define ME_ORDER_DECLARE(row) extern const me_schedule row;
ME_ORDER_LIST(ME_ORDER_DECLARE)
#undef ME_ORDER_DECLARE

/** Push one action that is not overlapped. */
void me_order_push(me_actions *actions, me_action_kind kind, int32_t chunk,
                   int32_t microbatch);

/** Mark what is before the first backward and after the last forward; for
 *  orders that do not say so themselves. */
void me_order_mark_phases(me_actions *actions);

/** Push @p warmup forwards, then F, I and W in turn, W @p lag micro-batches
 *  late; of one chunk. */
void me_order_push_lagging(const me_pipeline *pipeline, int32_t warmup,
                           int32_t lag, me_actions *actions);

/** A check that fails unless ranks hold @p chunks chunks each. */
me_status me_order_check_chunks(const char *name, const me_pipeline *pipeline,
                                int32_t chunks, me_diag *diag) ME_MUST_CHECK;

/** A check that fails unless there are at least @p least micro-batches. */
me_status me_order_check_microbatches(const char *name,
                                      const me_pipeline *pipeline,
                                      int32_t least,
                                      me_diag *diag) ME_MUST_CHECK;

/** A check that fails unless each rank holds two chunks, one of each
 *  direction, and the number of ranks is even. */
me_status me_order_check_two_ways(const char *name, const me_pipeline *pipeline,
                                  me_diag *diag) ME_MUST_CHECK;

/** Room for @p count actions, beside the list, whose failure it is if there
 *  is none; for me_actions_scratch_free(). */
me_action *me_actions_scratch(me_actions *actions, int32_t count);

/** Give it back; NULL is allowed. */
void me_actions_scratch_free(me_action *scratch);

/** PyTorch's group of micro-batches: m / max(1, m div p). */
int32_t me_order_torch_group(const me_pipeline *pipeline);

#endif /* MEMEST_PARALLEL_ORDERS_H */
