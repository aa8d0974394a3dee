/**
 * @file
 * The inside of the memory trackers, for mem_tracker*.c alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_MEM_TRACKER_IMPL_H
#define MEMEST_TRACK_MEM_TRACKER_IMPL_H

#include "track/mem_tracker.h"

/** What PyTorch's allocator rounds a small block to, and with it its tools. */
enum {
    ME_MEM_BLOCK_BYTES = 512
};

/** A block that is live. */
typedef struct me_mem_block {
    uint64_t bytes; /**< rounded as PyTorch's allocator does; 0: none */
    uint8_t category;
    bool is_counted; /**< in the snapshot */
} me_mem_block;

struct me_mem_tracker {
    me_engine *e;
    me_mod_tracker *mod;
    me_mem_options options;
    const me_mem_labels *labels;
    bool is_listening;  /**< from iteration 0 on */
    bool keeps_modules; /**< until the asked iteration is over */
    bool has_unchecked; /**< a block of a resized storage: the next operation
                             may make it a peak */
    bool is_in_step;    /**< of an optimizer */
    bool is_in_recomputation; /**< of `recomputed`, the outermost module */
    me_module_id recomputed;
    me_mem_snapshot current;
    me_mem_snapshot peak;
    me_mem_block *blocks; /**< by id */
    uint32_t n_blocks;
    uint32_t held_id;  /**< and one, of a gradient that PyTorch's tool itself
                            will keep until the moment is over; 0: none */
    me_mem_block held; /**< it, once it is free */
    me_mem_module *modules;
    uint32_t n_modules;
    uint32_t modules_capacity;
    uint32_t *place_of; /**< by module: place in the list and one, or 0 */
    uint32_t n_places;
    me_mem_point *points;
    uint32_t n_points;
    uint32_t points_capacity;
};

/** A module's record, or NULL. */
me_mem_module *me_mem_find(const me_mem_tracker *t, me_module_id module);

/** A module's record, made if there is none; NULL after a failure. */
me_mem_module *me_mem_record(me_mem_tracker *t, me_module_id module);

/** Append what is there now to a state of a module. */
void me_mem_append(me_mem_tracker *t, me_mem_module *m, uint32_t state);

/** The module's own peak begins anew. */
void me_mem_reset_peak(const me_mem_tracker *t, me_mem_module *m);

/** Would PyTorch's tool refuse the call of a known module in forward? A root must
 *  not be called twice; the engine has failed then. */
bool me_mem_is_refused(me_mem_tracker *t);

/** An operation has ended: peaks of all, and of modules that run. */
void me_mem_check_peaks(me_mem_tracker *t);

/** What the blocks of @p x, a borrowed tensor, take; 0: not known. */
uint64_t me_mem_bytes_of(const me_mem_tracker *t, const me_tensor *x);

/** The storage of @p x is of another category from now on. */
void me_mem_move(me_mem_tracker *t, const me_tensor *x, uint8_t category);

/** MemTracker's hook (mem_tracker_modules.c). */
void me_mem_on_module(void *self, const me_mod_event *event);

/** FSDPMemTracker's (mem_tracker_fsdp.c). */
void me_mem_on_shard_moment(void *self, me_module_id module,
                            me_shard_moment moment);
void me_mem_on_shard_role(void *self, const me_tensor *x, me_shard_role role);

#endif /* MEMEST_TRACK_MEM_TRACKER_IMPL_H */
