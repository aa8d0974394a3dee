/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/snapshot_action.h"

#include <stddef.h>
#include <string.h>

bool me_snapshot_action(const char *action, me_stream_kind *kind_out)
{
    static const struct {
        const char *name;
        me_stream_kind kind;
    } actions[] = {
        {"alloc", ME_STREAM_ALLOC},
        {"free_requested", ME_STREAM_FREE_REQUESTED},
        {"free_completed", ME_STREAM_FREE_COMPLETED},
        {"segment_alloc", ME_STREAM_END},
        {"segment_free", ME_STREAM_END},
        {"segment_map", ME_STREAM_END},
        {"segment_unmap", ME_STREAM_END},
        {"snapshot", ME_STREAM_END},
        {"oom", ME_STREAM_END},
        {"user_defined", ME_STREAM_END},
        {"workspace_snapshot", ME_STREAM_END},
    };

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(action, actions[i].name) == 0) {
            *kind_out = actions[i].kind;
            return true;
        }
    }
    return false;
}

bool me_snapshot_state(const char *state, bool *is_live_out)
{
    static const struct {
        const char *name;
        bool is_live;
    } states[] = {
        {"active_allocated", true},
        {"active_awaiting_free", true}, // as PyTorch documents it
        {"active_pending_free", true},  // as its code writes it
        {"inactive", false},
    };

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(state, states[i].name) == 0) {
            *is_live_out = states[i].is_live;
            return true;
        }
    }
    return false;
}
