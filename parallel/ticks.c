/* SPDX-License-Identifier: BSD-3-Clause */
// The plain model of a timeline: one duration for each kind of action.

#include "base/parse.h"
#include "parallel/timeline.h"

#include <stdio.h>
#include <string.h>

int64_t me_ticks_backward(const me_ticks *ticks)
{
    return ticks->backward != 0
               ? ticks->backward
               : ticks->input_gradient + ticks->weight_gradient;
}

static int64_t duration(const me_ticks *t, const me_action *action)
{
    const int64_t durations[ME_ACTION_COUNT] = {
        [ME_ACTION_FORWARD] = t->forward,
        [ME_ACTION_BACKWARD] = me_ticks_backward(t),
        [ME_ACTION_INPUT_GRADIENT] = t->input_gradient,
        [ME_ACTION_WEIGHT_GRADIENT] = t->weight_gradient,
    };
    return durations[action->kind];
}

static me_span run(void *self, const me_timeline_work *work, me_span *other_out)
{
    const me_ticks *t = self;
    const int64_t start =
        work->ready > work->is_free ? work->ready : work->is_free;
    const int64_t first = start + duration(t, work->action);
    if (work->other == NULL) {
        return (me_span){start, first};
    }
    const int64_t both = first + duration(t, work->other);
    const int64_t end = t->overlapped != 0 ? start + t->overlapped : both;
    *other_out = (me_span){start, end};
    return (me_span){start, end};
}

static int64_t arrive(void *self, const me_timeline_transfer *transfer)
{
    const me_ticks *t = self;
    return transfer->made + t->transfer;
}

me_ticks me_ticks_default(void)
{
    return (me_ticks){.forward = 1, .input_gradient = 1, .weight_gradient = 1};
}

me_timeline_model me_ticks_model(me_ticks *ticks)
{
    return (me_timeline_model){
        .run = run,
        .arrive = arrive,
        .self = ticks,
        .splits_blocks = ticks->is_serial,
    };
}

enum {
    NAME_BYTES = 8,
    TICKS_NAMES = 6,
    NUMBER_BYTES = 16,
    TICKS_MAX = 1000000000 /**< more would not add up in 64 bits */
};

/** The duration of a name; NULL: there is none. */
static int64_t *find(me_ticks *t, const char *name, size_t length)
{
    const struct {
        const char *name;
        int64_t *value;
    } names[] = {
        {"F", &t->forward},         {"I", &t->input_gradient},
        {"W", &t->weight_gradient}, {"B", &t->backward},
        {"FB", &t->overlapped},     {"comm", &t->transfer},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) == length &&
            strncmp(names[i].name, name, length) == 0) {
            return names[i].value;
        }
    }
    return NULL;
}

static bool parse_number(const char *text, size_t length, int64_t *value_out)
{
    char number[NUMBER_BYTES];
    uint64_t value = 0;
    if (length >= sizeof number) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = '\0';
    if (me_parse_u64(number, &value) != ME_OK || value > TICKS_MAX) {
        return false;
    }
    *value_out = (int64_t)value;
    return true;
}

me_status me_ticks_parse(const char *text, me_diag *diag, me_ticks *ticks)
{
    const char *item = text;
    const int64_t *seen[TICKS_NAMES];
    size_t n_seen = 0;
    for (;;) {
        const size_t length = strcspn(item, ",");
        const char *equals = memchr(item, '=', length);
        const size_t name = equals == NULL ? length : (size_t)(equals - item);
        int64_t *value = find(ticks, item, name);
        if (equals == NULL || value == NULL ||
            !parse_number(equals + 1, length - name - 1, value)) {
            return me_fail(
                diag, ME_ERR_CONFIG,
                "duration \"%.*s\": F, I, W, B, FB and comm are "
                "whole numbers up to %d, as F=1,I=1,W=1,comm=0",
                (int)(length < ME_DIAG_WHERE ? length : ME_DIAG_WHERE), item,
                TICKS_MAX);
        }
        for (size_t i = 0; i < n_seen; i++) {
            if (seen[i] == value) {
                return me_fail(diag, ME_ERR_CONFIG,
                               "duration \"%.*s\" is there twice", (int)name,
                               item);
            }
        }
        seen[n_seen++] = value;
        if (item[length] == '\0') {
            return ME_OK;
        }
        item += length + 1;
    }
}
