/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/twin_span.h"

void me_twin_span_begin(me_twin_span *span, const me_twin_peaks *peaks)
{
    span->begin = *peaks;
}

static void raise(uint64_t *raised, uint64_t begin, uint64_t end)
{
    *raised = end > begin ? end : *raised;
}

void me_twin_span_end(me_twin_span *span, const me_twin_peaks *peaks)
{
    raise(&span->raised.requested, span->begin.requested, peaks->requested);
    raise(&span->raised.allocated, span->begin.allocated, peaks->allocated);
    raise(&span->raised.iteration, span->begin.iteration, peaks->iteration);
}

/** A peak is final: was it raised since? */
static void settle(me_twin_span *span, uint64_t *raised, uint64_t peak)
{
    span->has_peak = span->has_peak || (*raised != 0 && peak <= *raised);
    *raised = 0;
}

void me_twin_span_close_span(me_twin_span *span, const me_twin_peaks *peaks)
{
    settle(span, &span->raised.requested, peaks->requested);
    settle(span, &span->raised.allocated, peaks->allocated);
}

void me_twin_span_close_iteration(me_twin_span *span, uint64_t peak)
{
    settle(span, &span->raised.iteration, peak);
}
