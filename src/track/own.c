/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/own.h"

void me_own_begin(me_own *own, const me_own_peaks *peaks)
{
    own->begin = *peaks;
}

static void raise(uint64_t *raised, uint64_t begin, uint64_t end)
{
    *raised = end > begin ? end : *raised;
}

void me_own_end(me_own *own, const me_own_peaks *peaks)
{
    raise(&own->raised.requested, own->begin.requested, peaks->requested);
    raise(&own->raised.allocated, own->begin.allocated, peaks->allocated);
    raise(&own->raised.iteration, own->begin.iteration, peaks->iteration);
}

/** A peak is final: was it raised since? */
static void settle(me_own *own, uint64_t *raised, uint64_t peak)
{
    own->has_peak = own->has_peak || (*raised != 0 && peak <= *raised);
    *raised = 0;
}

void me_own_close_span(me_own *own, const me_own_peaks *peaks)
{
    settle(own, &own->raised.requested, peaks->requested);
    settle(own, &own->raised.allocated, peaks->allocated);
}

void me_own_close_iteration(me_own *own, uint64_t peak)
{
    settle(own, &own->raised.iteration, peak);
}
