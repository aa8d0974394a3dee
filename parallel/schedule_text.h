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
    ME_TEXT_COLUMNS_MAX = 4096,  /**< of a grid of time */
    ME_TEXT_CELLS_MAX = 1 << 18, /**< of a grid, which grows with ranks times
                                    steps, and an order may be mostly empty */
};

/**
 * A line a step, a column a rank, as PyTorch's dump of an order: steps are
 * positions in the lists, not time. A grid of more than ME_TEXT_CELLS_MAX cells
 * of which fewer than half are filled is a line a rank in its place, and says so.
 */
void me_schedule_text_steps(const me_pipeline_order *order, me_str *text);

/**
 * A line a rank, a column @p unit of time: what begins there, `-` where it
 * goes on, `.` where the rank is idle. What begins within a column that
 * something else began in is not shown.
 *
 * @param unit  of the timeline's unit, at least 1; raised so that there are no
 *              more than ME_TEXT_COLUMNS_MAX columns, and of all ranks not
 *              more than ME_TEXT_CELLS_MAX, or one each
 * @return the unit that was used
 */
int64_t me_schedule_text_time(const me_pipeline_order *order,
                              const me_timeline *timeline, int64_t unit,
                              me_str *text);

#endif /* MEMEST_PARALLEL_SCHEDULE_TEXT_H */
