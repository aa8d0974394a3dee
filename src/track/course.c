/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/course.h"

#include "base/alloc.h"
#include "base/size.h"

#include <string.h>

void me_peaks_raise(me_peaks *peaks, const me_peaks *by)
{
    peaks->requested = me_max_u64(peaks->requested, by->requested);
    peaks->allocated = me_max_u64(peaks->allocated, by->allocated);
    peaks->reserved = me_max_u64(peaks->reserved, by->reserved);
}

void me_course_begin(me_course *course, const me_peaks *now)
{
    if (!course->keeps) {
        return;
    }
    course->is_on = true;
    course->is_action = false;
    course->is_phase = false;
    course->n_parts = 0;
    course->left_out = 0;
    course->since = *now;
    course->last = *now;
    if (course->live != NULL) {
        me_live_by_category(course->live, course->begin_by_category);
    }
}

void me_course_raise(me_course *course, const me_peaks *span)
{
    if (course->is_on) {
        me_peaks_raise(&course->since, span);
    }
}

static me_course_part begin_part(const char *name, const me_peaks *now)
{
    return (me_course_part){
        .name = name,
        .chunk = -1,
        .microbatch = ME_NO_MICROBATCH,
        .requested = {.begin = now->requested},
        .allocated = {.begin = now->allocated},
        .reserved = {.begin = now->reserved},
    };
}

static void end_part(me_course_part *part, const me_peaks *peak,
                     const me_peaks *now)
{
    part->requested.peak = peak->requested;
    part->requested.end = now->requested;
    part->allocated.peak = peak->allocated;
    part->allocated.end = now->allocated;
    part->reserved.peak = peak->reserved;
    part->reserved.end = now->reserved;
}

static bool grow(me_course *course)
{
    me_course_part *grown =
        me_grow(course->parts, course->n_parts, &course->capacity,
                sizeof *grown, "course.parts");
    if (grown == NULL) {
        course->status = ME_ERR_NOMEM;
        return false;
    }
    course->parts = grown;
    return true;
}

/** The open part ends. Of those that find no room only the peaks remain, for
 *  the last part of all. */
static void push(me_course *course, bool is_last, const me_peaks *now)
{
    if (course->n_parts >= ME_COURSE_MAX - 1 && !is_last) {
        course->left_out++;
        return;
    }
    if (course->n_parts == course->capacity && !grow(course)) {
        return;
    }
    end_part(&course->open, &course->since, now);
    if (course->live != NULL) {
        me_live_by_category(course->live, course->open.end_by_category);
    }
    course->parts[course->n_parts++] = course->open;
    course->since = *now;
    course->last = *now;
}

void me_course_action_begin(me_course *course, const me_event *event,
                            const me_peaks *now)
{
    if (course->is_on) {
        course->open = begin_part(event->name, now);
        course->open.chunk = event->chunk;
        course->open.microbatch = event->microbatch;
        course->is_action = true;
        course->is_phase = false;
    }
}

void me_course_action_end(me_course *course, const me_peaks *now)
{
    if (course->is_on && course->is_action) {
        push(course, false, now);
        course->is_action = false;
    }
}

void me_course_phase(me_course *course, me_phase phase, const me_peaks *now)
{
    if (!course->is_on || course->is_action) {
        return;
    }
    if (course->is_phase) {
        push(course, false, now);
        course->is_phase = false;
    }
    if (phase == ME_PHASE_GRADIENT_REDUCTION || phase == ME_PHASE_OPTIMIZER) {
        course->open = begin_part(me_phase_name(phase), now);
        course->is_phase = true;
    }
}

void me_course_end(me_course *course, const me_peaks *now)
{
    if (!course->is_on) {
        return;
    }
    course->open = begin_part(me_phase_name(ME_PHASE_OTHER), &course->last);
    push(course, true, now);
    course->is_on = false;
}

me_status me_course_copy(const me_course *course, me_rank_result *result)
{
    result->course =
        me_arena_alloc(result->arena, course->n_parts, sizeof *result->course);
    if (result->course == NULL) {
        return ME_ERR_NOMEM;
    }
    if (course->n_parts > 0) {
        memcpy(result->course, course->parts,
               course->n_parts * sizeof *result->course);
    }
    if (course->n_parts > 0) {
        memcpy(result->course_begin_by_category, course->begin_by_category,
               sizeof result->course_begin_by_category);
    }
    result->n_course = course->n_parts;
    result->course_left_out = course->left_out;
    return ME_OK;
}

void me_course_fini(me_course *course)
{
    me_free(course->parts);
    *course = (me_course){.keeps = false};
}
