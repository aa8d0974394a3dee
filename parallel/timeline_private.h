/**
 * @file
 * What the two ways to run an order share. For parallel/timeline*.c only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_TIMELINE_PRIVATE_H
#define MEMEST_PARALLEL_TIMELINE_PRIVATE_H

#include "parallel/timeline.h"

/** A timeline without times, to be destroyed; NULL: no host memory. */
me_timeline *me_timeline_new(const me_pipeline_order *order);

/** Note that a rank worked: its busy time, begin and end. */
void me_timeline_note(me_timeline_rank *rank, me_span span);

/** Makespan and bubbles, once all ranks have ended. */
void me_timeline_sum_up(me_timeline *timeline);

#endif /* MEMEST_PARALLEL_TIMELINE_PRIVATE_H */
