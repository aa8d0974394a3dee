/**
 * @file
 * Orders as text, for people: a grid of steps, and a grid of time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SCHEDULE_TEXT_H
#define MEMEST_PARALLEL_SCHEDULE_TEXT_H

#include "base/str.h"
#include "parallel/timeline.h"

enum {
    ME_TEXT_COLUMNS_MAX = 4096 /**< of a grid of time */
};

/** A line a step, a column a rank, as PyTorch's dump of an order: steps are
 *  positions in the lists, not time. */
void me_schedule_text_steps(const me_pipeline_order *order, me_str *text);

/**
 * A line a rank, a column @p unit of time: what begins there, `-` where it
 * goes on, `.` where the rank is idle. What begins within a column that
 * something else began in is not shown.
 *
 * @param unit  of the timeline's unit, at least 1; raised so that there are no
 *              more than ME_TEXT_COLUMNS_MAX columns
 * @return the unit that was used
 */
int64_t me_schedule_text_time(const me_pipeline_order *order,
                              const me_timeline *timeline, int64_t unit,
                              me_str *text);

#endif /* MEMEST_PARALLEL_SCHEDULE_TEXT_H */
