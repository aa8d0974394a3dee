/**
 * @file
 * What each module took in one iteration: the rank's peak while its forward or
 * backward ran, and the activation that its first forward left behind. Modules
 * inside others count for those as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_MODULE_STATS_H
#define MEMEST_TRACK_MODULE_STATS_H

#include "base/status.h"
#include "model/event.h"
#include "tensor/module.h"
#include "track/live.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct me_module_stat {
    uint64_t forward_peak;  /**< 0: it never ran */
    uint64_t backward_peak; /**< recomputation included */
    uint64_t activation;    /**< of itself, without its children */
    int32_t first_microbatch;
    bool has_forward;
} me_module_stat;

/** A module that has been entered and not left. */
typedef struct me_module_frame {
    uint32_t module;
    bool is_backward;
    bool is_forward; /**< neither: work on parameters, as the optimizer's */
    uint64_t peak;
} me_module_frame;

typedef struct me_module_stats {
    const me_module_tree *tree; /**< of the rank; grows during set-up */
    me_module_stat *stats;      /**< by module */
    uint32_t n_stats;
    me_module_frame *frames; /**< outermost first */
    uint32_t n_frames;
    uint32_t frames_capacity;
    uint32_t epoch; /**< blocks of an older one are no longer counted */
    int32_t microbatch;
    bool is_on; /**< inside the iteration that is watched */
    me_status status;
} me_module_stats;

/** Watch from now on; @p tree is borrowed. Local. */
void me_module_stats_init(me_module_stats *stats, const me_module_tree *tree);

/** Give back. Local. */
void me_module_stats_fini(me_module_stats *stats);

/** The watched iteration begins: forget what was; or it ends. Local. */
void me_module_stats_begin(me_module_stats *stats);
void me_module_stats_end(me_module_stats *stats);

/** A module is entered while @p requested bytes are live. Local. */
void me_module_stats_enter(me_module_stats *stats, const me_event *event,
                           uint64_t requested);

/** The innermost frame of the event's module is left. Local. */
void me_module_stats_leave(me_module_stats *stats, const me_event *event);

/** The modules that are running took @p requested bytes, somewhere in an action
 *  that is not told. Local. */
void me_module_stats_raise(me_module_stats *stats, uint64_t requested);

/** The phase has changed: the forward's activation is what it is. Local. */
void me_module_stats_phase(me_module_stats *stats);

/** @p block was just made; @p requested bytes are live now. Local. */
void me_module_stats_alloc(me_module_stats *stats, const me_event *event,
                           me_live_block *block, uint64_t requested);

/** @p block of @p module was of category @p before and is now @p after. */
void me_module_stats_recategorize(me_module_stats *stats, uint32_t module,
                                  uint8_t before, uint8_t after,
                                  const me_live_block *block);

/** @p block, of @p module and @p category, has lost its last reference. */
void me_module_stats_free(me_module_stats *stats, uint32_t module,
                          uint8_t category, me_live_block *block);

#endif /* MEMEST_TRACK_MODULE_STATS_H */
