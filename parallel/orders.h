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
    X(me_order_gpipe)

#define ME_ORDER_DECLARE(row) extern const me_schedule row;
ME_ORDER_LIST(ME_ORDER_DECLARE)
#undef ME_ORDER_DECLARE

/** Actions of a pipeline in which each is a forward or a whole backward. */
int32_t me_order_count(const me_pipeline *pipeline);

/** A check that fails unless ranks hold one chunk each. */
me_status me_order_check_one_chunk(const char *name,
                                   const me_pipeline *pipeline,
                                   me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_PARALLEL_ORDERS_H */
