/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_timeline.h"

#include "base/alloc.h"
#include "base/size.h"

#include <string.h>

static bool is_action(const me_course_part *part)
{
    return part->chunk >= 0;
}

/** Is the span that part? */
static bool is_same(const me_course_part *part, const me_time_span *span)
{
    const bool is_forward = strcmp(part->name, "F") == 0;
    return part->chunk == span->chunk && part->microbatch == span->microbatch &&
           is_forward == (span->part == ME_TIME_FORWARD);
}

/** The parts that are actions, each with its span. @return false if the two
 *  are not of the same order */
static bool pair_actions(const me_rank_result *result,
                         const me_time_stage *stage, me_timed_course *course)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < result->n_course; i++) {
        const me_course_part *part = &result->course[i];
        if (!is_action(part)) {
            continue;
        }
        if (n == stage->n_spans || !is_same(part, &stage->spans[n])) {
            return false;
        }
        course->parts[n] = (me_timed_part){
            .part = part,
            .start_ns = stage->spans[n].start_ns,
            .end_ns = stage->spans[n].end_ns,
        };
        n++;
    }
    course->n_parts = n;
    return n == stage->n_spans && n > 0;
}

static void join(me_course_bytes *rest, const me_course_bytes *part,
                 bool is_first)
{
    if (is_first) {
        *rest = *part;
    }
    rest->peak = me_max_u64(rest->peak, part->peak);
    rest->end = part->end;
}

/** All that is no action, as one. */
static void add_rest(const me_rank_result *result, int64_t step_ns,
                     me_timed_course *course)
{
    bool is_first = true;
    course->rest = (me_course_part){.name = me_phase_name(ME_PHASE_OPTIMIZER),
                                    .chunk = -1,
                                    .microbatch = ME_NO_MICROBATCH};
    for (uint32_t i = 0; i < result->n_course; i++) {
        const me_course_part *part = &result->course[i];
        if (!is_action(part)) {
            join(&course->rest.requested, &part->requested, is_first);
            join(&course->rest.allocated, &part->allocated, is_first);
            join(&course->rest.reserved, &part->reserved, is_first);
            memcpy(course->rest.end_by_category, part->end_by_category,
                   sizeof part->end_by_category);
            is_first = false;
        }
    }
    const int64_t start = course->parts[course->n_parts - 1].end_ns;
    if (!is_first && start < step_ns) {
        course->parts[course->n_parts++] = (me_timed_part){
            .part = &course->rest, .start_ns = start, .end_ns = step_ns};
    }
}

me_status me_timed_course_init(const me_compare_line *line, int32_t stage,
                               me_timed_course *course_out)
{
    const me_step_time *step = me_compare_step(line);
    const me_rank_result *result = line->stages[stage].result;
    *course_out = (me_timed_course){.n_parts = 0};
    course_out->parts = me_alloc((size_t)result->n_course + 1,
                                 sizeof *course_out->parts, "compare.parts");
    if (course_out->parts == NULL) {
        return ME_ERR_NOMEM;
    }
    if (result->course_left_out == 0 &&
        pair_actions(result, &step->stages[stage], course_out)) {
        add_rest(result, step->step_ns, course_out);
    } else {
        course_out->n_parts = 0;
    }
    return ME_OK;
}

void me_timed_course_fini(me_timed_course *course)
{
    me_free(course->parts);
    *course = (me_timed_course){.n_parts = 0};
}
