/**
 * @file
 * The course of one iteration: bytes at the beginning, at most and at the end
 * of every action of the pipeline's order and of the phases around them. It is
 * fed by the tracker, which knows the bytes; nothing is kept per allocation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_COURSE_H
#define MEMEST_TRACK_COURSE_H

#include "base/status.h"
#include "model/event.h"
#include "track/live.h"
#include "track/result.h"

#include <stdbool.h>
#include <stdint.h>

/** Three kinds of bytes at one time, or at most in one span of it; unknown
 *  ones stay unknown. */
typedef struct me_peaks {
    uint64_t requested;
    uint64_t allocated;
    uint64_t reserved;
} me_peaks;

/** All zero is one that keeps nothing. */
typedef struct me_course {
    bool keeps;          /**< somebody wants it */
    const me_live *live; /**< what is live, by category; borrowed */
    bool is_on;          /**< the iteration runs */
    uint64_t begin_by_category[ME_CATEGORY_COUNT]; /**< when it began */
    bool is_action;        /**< the open part is an action */
    bool is_phase;         /**< the open part is a phase */
    me_course_part open;   /**< meaningless unless one of the two */
    me_peaks since;        /**< at most since the last part ended */
    me_peaks last;         /**< when it ended */
    me_course_part *parts; /**< names are static; owned */
    uint32_t n_parts;
    uint32_t capacity;
    uint32_t left_out;
    me_status status; /**< the first failure; it sticks */
} me_course;

/** The larger ones of both; unknown is the largest number. Local. */
void me_peaks_raise(me_peaks *peaks, const me_peaks *by);

/** The iteration begins (again) with @p now. Local. */
void me_course_begin(me_course *course, const me_peaks *now);

/** A span of time has ended with these peaks. Local. */
void me_course_raise(me_course *course, const me_peaks *span);

/** An action begins or ends; others than those in the iteration are ignored.
 *  Local. */
void me_course_action_begin(me_course *course, const me_event *event,
                            const me_peaks *now);
void me_course_action_end(me_course *course, const me_peaks *now);

/** The phase has changed; what is inside of an action belongs to it. Local. */
void me_course_phase(me_course *course, me_phase phase, const me_peaks *now);

/** The iteration ends: the rest of it is the last part. Local. */
void me_course_end(me_course *course, const me_peaks *now);

/**
 * Write it down in @p result. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_course_copy(const me_course *course,
                         me_rank_result *result) ME_MUST_CHECK;

/** Give back. Local. */
void me_course_fini(me_course *course);

#endif /* MEMEST_TRACK_COURSE_H */
