/**
 * @file
 * When the calls of a traced iteration happen: the predicted times of the
 * pipeline's actions, and between them evenly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_PERFETTO_CLOCK_H
#define MEMEST_REPORT_PERFETTO_CLOCK_H

#include "base/status.h"
#include "time/pipeline_step.h"
#include "track/memory_trace.h"

/** A call whose time is known. */
typedef struct me_perfetto_anchor {
    uint32_t at; /**< calls before it */
    int64_t ns;
} me_perfetto_anchor;

/** All zero is none. */
typedef struct me_perfetto_clock {
    me_perfetto_anchor *anchors; /**< rising; the first is 0, 0 */
    uint32_t n_anchors;
    uint32_t capacity;
} me_perfetto_clock;

/**
 * The times of an iteration. Its calls are the entries of the trace and the
 * marks, each one.
 *
 * @param stage    NULL: nothing is predicted, a call takes a microsecond
 * @param step_ns  of the whole iteration
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_perfetto_clock_init(me_perfetto_clock *clock,
                                 const me_memory_trace *trace,
                                 int32_t iteration, const me_time_stage *stage,
                                 int64_t step_ns) ME_MUST_CHECK;

void me_perfetto_clock_fini(me_perfetto_clock *clock);

/** The time of a call, from the iteration's beginning, in ns. */
int64_t me_perfetto_time(const me_perfetto_clock *clock, uint32_t at);

#endif /* MEMEST_REPORT_PERFETTO_CLOCK_H */
