/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "model/dtype.h"
#include "track/tracker_impl.h"

/* What a rank sends and receives in its steady iteration, by group and kind. */

static void add(me_volume_result *v, const me_exchange_sum *sum, me_dtype dtype)
{
    v->calls += sum->calls;
    v->bytes =
        me_size_add(v->bytes, me_size_mul(sum->count, me_dtype_bytes(dtype)));
}

void me_tracker_count_call(me_tracker *tracker, const me_event *event)
{
    if (event->iteration != ME_STEADY_ITERATION ||
        event->group >= ME_GROUP_COUNT ||
        event->collective >= ME_COLLECTIVE_COUNT) {
        return;
    }
    const me_exchange_sum one = {.calls = 1, .count = event->count};
    add(&tracker->volume[event->group][event->collective], &one,
        (me_dtype)event->dtype);
}

void me_tracker_count_exchange(me_tracker *tracker,
                               const me_exchange_event *exchange)
{
    if (exchange->iteration == ME_STEADY_ITERATION) {
        me_volume_result *of = tracker->volume[exchange->group];
        add(&of[ME_COLLECTIVE_SEND], &exchange->sent,
            (me_dtype)exchange->dtype);
        add(&of[ME_COLLECTIVE_RECV], &exchange->received,
            (me_dtype)exchange->dtype);
    }
}
