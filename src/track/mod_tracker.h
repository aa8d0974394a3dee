/**
 * @file
 * ModTracker (torch/distributed/_tools/mod_tracker.py): which modules run,
 * forward and backward, with the names that PyTorch's tools print, and in the
 * order in which its hooks fire. A module's backward begins when the gradient
 * of its output is there and ends when that of its input is, or with the whole
 * backward where its input needs none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_MOD_TRACKER_H
#define MEMEST_TRACK_MOD_TRACKER_H

#include "tensor/hooks.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum me_mod_event_kind {
    ME_MOD_PRE_FORWARD,
    ME_MOD_POST_FORWARD,
    ME_MOD_PRE_BACKWARD,
    ME_MOD_POST_BACKWARD
} me_mod_event_kind;

/** One call of a user's hook; what it points to lives as long as the tracker. */
typedef struct me_mod_event {
    me_mod_event_kind kind;
    me_module_id module;
    const char *fqn; /**< such as "Transformer.layers.0" */
    bool is_backward;
    bool is_parent;  /**< the module is among those that run */
    me_tensor *data; /**< input of a pre-forward, output of a post-forward;
                          borrowed during the call, else NULL */
} me_mod_event;

/** A user's hook of all four kinds. */
typedef struct me_mod_observer {
    void (*on_event)(void *self, const me_mod_event *event);
    void *self;
} me_mod_observer;

enum {
    ME_MAX_MOD_OBSERVERS = 4
};

typedef struct me_mod_tracker me_mod_tracker;

/**
 * A tracker that hooks into @p e, before the program runs. It must live until
 * the engine is muted or destroyed.
 *
 * @return owned by the caller; NULL without memory
 */
me_mod_tracker *me_mod_tracker_create(me_engine *e);

/** Give back; NULL is allowed. */
void me_mod_tracker_destroy(me_mod_tracker *t);

/** Call @p observer from now on; at most ME_MAX_MOD_OBSERVERS, in their order,
 *  else the engine fails. */
void me_mod_tracker_observe(me_mod_tracker *t, me_mod_observer observer);

/** Does a module of this name run, as ModTracker.parents has it? */
bool me_mod_tracker_is_parent(const me_mod_tracker *t, me_module_id module);

/** Names that ModTracker.parents has beside "Global", in the order in which
 *  they became known; call with @p at from 0 until NULL. */
const char *me_mod_tracker_parent(const me_mod_tracker *t, uint32_t at);

/** Name of a module that has run forward, else NULL. */
const char *me_mod_tracker_fqn(const me_mod_tracker *t, me_module_id module);

#endif /* MEMEST_TRACK_MOD_TRACKER_H */
