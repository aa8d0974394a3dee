/**
 * @file
 * The course of a stage's memory on the step's time axis: what a rank runs,
 * from when to when, and the bytes meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_COMPARE_TIMELINE_H
#define MEMEST_REPORT_COMPARE_TIMELINE_H

#include "report/comparison.h"

/** A part of the course, from when to when. */
typedef struct me_timed_part {
    const me_course_part *part; /**< borrowed from the rank's result */
    int64_t start_ns;
    int64_t end_ns;
} me_timed_part;

/** The actions of a stage's worst rank in time, then the rest of the step as
 *  one part. */
typedef struct me_timed_course {
    me_timed_part *parts; /**< owned */
    uint32_t n_parts;
    me_course_part rest; /**< what the last part stands for: all phases after
                              the last action; its name is "optimizer" */
} me_timed_course;

/**
 * Put the course of a stage on the time axis. Local.
 *
 * @param line        with a predicted step, and whose course was kept
 * @param course_out  for me_timed_course_fini(), not to be moved; without
 *                    parts where actions and predicted times are not of the
 *                    same order or not all were kept
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_timed_course_init(const me_compare_line *line, int32_t stage,
                               me_timed_course *course_out) ME_MUST_CHECK;

/** Give back. Local. */
void me_timed_course_fini(me_timed_course *course);

#endif /* MEMEST_REPORT_COMPARE_TIMELINE_H */
