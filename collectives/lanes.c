/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/lanes.h"

#include "base/alloc.h"

static uint32_t count_streams(const me_call_log *log)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < log->n_calls; i++) {
        const me_call *call = &log->calls[i];
        const uint32_t awaited =
            call->kind == ME_CALL_WAIT ? (uint32_t)call->peer : 0;
        const uint32_t last = call->stream > awaited ? call->stream : awaited;
        count = last + 1 > count ? last + 1 : count;
    }
    return count;
}

/** A wait inside a section comes before it: the section's calls are launched
 * at its end. */
static void find_steps(me_lanes *lanes)
{
    const me_call_log *log = lanes->log;
    for (uint32_t i = 0; i < log->n_calls;) {
        const uint32_t group = log->calls[i].group;
        uint32_t end = i + 1;
        for (uint32_t j = i + 1; group != 0 && j < log->n_calls; j++) {
            if (log->calls[j].kind == ME_CALL_WAIT) {
                continue;
            }
            if (log->calls[j].group != group) {
                break;
            }
            end = j + 1;
        }
        for (uint32_t j = i + 1; j < end; j++) {
            if (log->calls[j].kind == ME_CALL_WAIT) {
                lanes->steps[lanes->n_steps++] =
                    (me_step){.first = j, .end = j + 1};
            }
        }
        lanes->steps[lanes->n_steps++] = (me_step){.first = i, .end = end};
        i = end;
    }
}

/** Put the step into the lane once; `last` is the lane's last step + 1. */
static void enqueue(uint32_t *lengths, uint32_t *last, uint32_t lane,
                    uint32_t step, me_lanes *lanes)
{
    if (last[lane] == step + 1) {
        return;
    }
    last[lane] = step + 1;
    if (lanes->queue != NULL) {
        lanes->queue[lanes->start[lane] + lengths[lane]] = step;
    }
    lengths[lane]++;
}

/** First without a queue, to learn the lengths of the lanes, then with one. */
static void fill_lanes(me_lanes *lanes, uint32_t *lengths, uint32_t *last)
{
    for (uint32_t i = 0; i < lanes->n_lanes; i++) {
        lengths[i] = 0;
        last[i] = 0;
    }
    for (uint32_t i = 0; i < lanes->n_steps; i++) {
        me_step *step = &lanes->steps[i];
        const me_call *calls = lanes->log->calls;
        if (me_step_is_wait(lanes, step)) {
            step->position = lengths[calls[step->first].peer];
            enqueue(lengths, last, calls[step->first].stream, i, lanes);
            continue;
        }
        for (uint32_t j = step->first; j < step->end; j++) {
            if (calls[j].kind != ME_CALL_WAIT) {
                enqueue(lengths, last, calls[j].stream, i, lanes);
                enqueue(lengths, last, me_lanes_of_comm(lanes, &calls[j]), i,
                        lanes);
            }
        }
    }
}

me_status me_lanes_init(const me_call_log *log, me_lanes *lanes_out)
{
    me_lanes lanes = {.log = log, .n_streams = count_streams(log)};
    lanes.n_lanes = lanes.n_streams + log->n_comms;
    const size_t n = lanes.n_lanes;
    uint32_t *lengths = me_alloc(2 * n, sizeof *lengths, "lanes.lengths");
    lanes.start = me_alloc(n + 1, sizeof *lanes.start, "lanes.start");
    lanes.steps = me_alloc(log->n_calls, sizeof *lanes.steps, "lanes.steps");
    me_status status = ME_ERR_NOMEM;
    if (lengths == NULL || lanes.start == NULL || lanes.steps == NULL) {
        goto out;
    }
    find_steps(&lanes);
    fill_lanes(&lanes, lengths, lengths + n);
    for (size_t i = 0; i < n; i++) {
        lanes.start[i + 1] = lanes.start[i] + lengths[i];
    }
    lanes.queue = me_alloc(lanes.start[n], sizeof *lanes.queue, "lanes.queue");
    if (lanes.queue == NULL) {
        goto out;
    }
    fill_lanes(&lanes, lengths, lengths + n);
    *lanes_out = lanes;
    lanes = (me_lanes){0};
    status = ME_OK;
out:
    me_lanes_fini(&lanes);
    me_free(lengths);
    return status;
}

void me_lanes_fini(me_lanes *lanes)
{
    me_free(lanes->steps);
    me_free(lanes->start);
    me_free(lanes->queue);
    *lanes = (me_lanes){0};
}
