/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "parallel/schedule.h"

/** What a rank holds at a point of its order. */
typedef struct held {
    int32_t activation;
    int32_t pending_w;
} held;

/** What an action adds; those that compute nothing, nothing. */
static const held added[ME_ACTION_COUNT] = {
    [ME_ACTION_FORWARD] = {.activation = 1},
    [ME_ACTION_BACKWARD] = {.activation = -1},
    [ME_ACTION_INPUT_GRADIENT] = {.activation = -1, .pending_w = 1},
    [ME_ACTION_WEIGHT_GRADIENT] = {.pending_w = -1},
};

static void hold(held *h, const me_action *action)
{
    h->activation += added[action->kind].activation;
    h->pending_w += added[action->kind].pending_w;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

me_action_peaks me_actions_peaks(const me_actions *actions)
{
    me_action_peaks peaks = {.full = 0};
    held h = {.activation = 0};
    bool has_backward = false;
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *action = &actions->items[i];
        hold(&h, action);
        has_backward = has_backward || action->kind == ME_ACTION_BACKWARD ||
                       action->kind == ME_ACTION_INPUT_GRADIENT;
        peaks.forwards_first +=
            !has_backward && action->kind == ME_ACTION_FORWARD;
        peaks.full = larger(peaks.full, h.activation + h.pending_w);
        peaks.activation = larger(peaks.activation, h.activation);
        peaks.pending_w = larger(peaks.pending_w, h.pending_w);
        peaks.half = larger(peaks.half, 2 * h.activation + h.pending_w);
    }
    return peaks;
}

int32_t me_actions_in_flight(const me_actions *actions)
{
    return me_actions_peaks(actions).full;
}
