/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/events.h"

#include "ops/reduce.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const me_card hopper = {
    .compute_capability = 90,
    .multiprocessors = 132,
    .threads_per_multiprocessor = 2048,
    .cublas_workspace_bytes = TEST_WORKSPACE,
    .te_workspace_bytes = (UINT64_C(32) << 20) + 1024,
};

static void write_word(me_test_events *events, const char *sign,
                       uint64_t number)
{
    const size_t room = sizeof events->text - events->length;
    const int n = snprintf(events->text + events->length, room, "%s%s%" PRIu64,
                           events->length == 0 ? "" : " ", sign, number);
    assert_true(n > 0 && (size_t)n < room);
    events->length += (size_t)n;
}

/** A free that was asked for and did not come at once. */
static void settle(me_test_events *events)
{
    if (events->is_waiting) {
        write_word(events, "~", events->bytes);
        events->is_waiting = false;
    }
}

static void on_free(me_test_events *events, const me_event *event)
{
    if (!events->is_waiting || events->block != event->block) {
        settle(events);
    }
    events->is_waiting = false;
    events->late -= event->bytes;
    events->live -= event->bytes;
    write_word(events, "-", event->bytes);
}

static void on_event(void *self, const me_event *event)
{
    me_test_events *events = self;
    if (event->kind == ME_EVENT_FREE_COMPLETED) {
        on_free(events, event);
        return;
    }
    settle(events);
    if (event->kind == ME_EVENT_ALLOC) {
        events->live += event->bytes;
        write_word(events, "+", event->bytes);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        events->is_waiting = true;
        events->block = event->block;
        events->bytes = event->bytes;
        events->late += event->bytes;
    } else if (event->kind == ME_EVENT_COLLECTIVE) {
        char name[32] = "";
        (void)snprintf(name, sizeof name, "%s:",
                       me_collective_name((me_collective)event->collective));
        write_word(events, name, event->count);
    }
}

void me_test_events_init_on(me_test_events *events, uint32_t capability)
{
    me_card card = hopper;
    card.compute_capability = capability;
    *events = (me_test_events){.e = NULL};
    assert_int_equal(me_engine_create(&card, &events->e), ME_OK);
    me_ops_install(events->e);
    me_engine_observe(events->e,
                      (me_observer){.on_event = on_event, .self = events});
}

void me_test_events_init(me_test_events *events)
{
    me_test_events_init_on(events, hopper.compute_capability);
}

void me_test_events_fini(me_test_events *events)
{
    me_engine_destroy(events->e);
    events->e = NULL;
}

const char *me_test_events_take(me_test_events *events)
{
    static char taken[TEST_EVENTS_TEXT];
    settle(events);
    memcpy(taken, events->text, sizeof taken);
    taken[events->length] = '\0';
    events->length = 0;
    return taken;
}

int me_test_events_setup(void **state)
{
    me_test_events *events = malloc(sizeof *events);
    if (events == NULL) {
        return -1;
    }
    me_test_events_init(events);
    *state = events;
    return 0;
}

int me_test_events_teardown(void **state)
{
    me_test_events *events = *state;
    me_test_events_fini(events);
    free(events);
    return 0;
}

me_tensor *me_test_leaf(me_engine *e, me_shape shape)
{
    me_tensor *x = me_empty(e, "leaf", ME_DTYPE_BFLOAT16, shape);
    x->requires_grad = true;
    return x;
}
