/**
 * @file
 * The engine's inside, for the files of src/tensor alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_ENGINE_PRIVATE_H
#define MEMEST_TENSOR_ENGINE_PRIVATE_H

#include "base/arena.h"
#include "tensor/autocast.h"
#include "tensor/autograd.h"
#include "tensor/engine.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

/** Freed storages that another stream still used. */
typedef struct me_pending_frees {
    me_storage **storages;
    uint32_t count;
    uint32_t capacity;
} me_pending_frees;

/** Whose a block is. */
typedef struct me_block_holder {
    me_storage *storage; /**< NULL: nobody's */
    uint64_t age;        /**< blocks that were made before it */
    bool is_apart;       /**< see me_block_set_apart() */
} me_block_holder;

/** Ids of blocks: the smallest unused ones first in, last out. */
typedef struct me_block_ids {
    uint32_t *freed;
    uint32_t count;
    uint32_t capacity;
    uint32_t next;
    me_block_holder *holders; /**< by id */
    uint32_t n_holders;
    uint64_t n_made; /**< blocks ever */
} me_block_ids;

/** Variables of all open frames, innermost last. */
typedef struct me_variables {
    me_tensor **tensors;
    uint32_t count;
    uint32_t capacity;
    uint32_t base; /**< where the running frame begins */
} me_variables;

/** Range of recorded events by which one switch of the running module was told,
 * me_module_switch(). */
typedef struct me_module_switch_events {
    uint32_t begin;
    uint32_t end;
    me_module_id from;
    me_module_id to;
    bool is_there;
} me_module_switch_events;

/** What happens to what modules keep, see me_attribute_set(). */
typedef enum me_keeping {
    ME_KEEPING_SET,    /**< an attribute has got a tensor */
    ME_KEEPING_AGAIN,  /**< of a block that another one's tensor shows */
    ME_KEEPING_LET_GO, /**< an attribute has let go of a tensor */
    ME_KEEPING_GONE,   /**< and what only it held has been freed */
    ME_KEEPING_HANDED, /**< which a caller's tensor was; it is freed now */
    ME_KEEPING_LEFT    /**< attributes alone hold the block from now on */
} me_keeping;

/** One such change; it comes before event `at` of the recording. */
typedef struct me_kept_change {
    me_keeping keeping;
    uint32_t at;
    me_module_id module; /**< that runs */
    bool has_block;
    uint32_t block;
    me_tensor **attribute; /**< NULL: left */
} me_kept_change;

/** Events of the action that is being recorded; see script.h. */
typedef struct me_recording {
    me_event *events;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /**< of each block id, while they are read */
    uint32_t n_slots;
    int32_t *entered; /**< of each module, while they are read */
    uint32_t n_modules;
    uint64_t place;               /**< where the program was when it began */
    me_module_id module;          /**< that ran then */
    bool has_module;              /**< one was entered or left since */
    me_module_switch_events lead; /**< the first change, if by a switch */
    me_module_switch_events last; /**< the last switch */
    uint32_t n_switches;
    bool stays_outer;   /**< the first switch went to the running module */
    bool is_round;      /**< see me_script_begin_round() */
    int32_t microbatch; /**< of a round: that events' ones count from */
    me_work work[ME_PHASE_COUNT];
    me_kept_change *keepings;
    uint32_t n_keepings;
    uint32_t keepings_capacity;
    bool is_on;
} me_recording;

/** A hook of a tensor, at the node that made it; see hooks.h. */
struct me_node_hook {
    struct me_node_hook *next;
    void (*run)(void *self, uint32_t number);
    void *self;
    uint32_t number;
};

/** A kind, kept once; see kind.c. */
enum {
    ME_PINNED_CLASSES = 64 /**< powers of two */
};

/** What the host holds now. */
typedef struct me_host_live {
    uint64_t bytes[ME_HOST_USES];
    uint64_t pageable_bytes; /**< of these, not pinned */
    uint32_t
        n_free[ME_PINNED_CLASSES]; /**< pinned blocks of each power of two */
} me_host_live;

typedef struct me_interned_kind me_interned_kind;

struct me_engine {
    me_arena *arena;
    me_status status;
    me_diag diag;
    me_card card;
    me_observer observers[ME_MAX_OBSERVERS];
    uint32_t n_observers;
    int8_t strand_of[ME_MAX_OBSERVERS]; /**< of each observer, see strand.h */
    int8_t strand;                      /**< that is told now */
    uint32_t
        n_first_observers; /**< of no strand or the first, which come before
                                     the others */
    struct me_strand_tape
        *strand_tape; /**< owned; NULL: nothing was kept yet */
    uint64_t n_events;
    bool has_exchanged[ME_GROUP_COUNT]; /**< see me_engine_has_exchanged() */

    me_context context;
    int32_t iteration;
    int32_t microbatch;
    uint8_t pass;
    me_module_id module;
    bool is_at_shard;      /**< see me_module_switch_to_shard() */
    uint64_t timing_bytes; /**< see me_compile_timing_note() */
    uint64_t doubt_bytes;  /**< see me_launch_doubt() */
    bool is_compile_cache_warm;
    bool is_deterministic; /**< see me_deterministic_set() */
    me_autocast autocast;
    bool is_scratch; /**< of what is allocated now */
    me_work work[ME_PHASE_COUNT];
    uint32_t n_storages; /**< ever made */
    me_launch_listener listener;
    me_hooks hooks[ME_MAX_HOOKS];
    uint32_t n_hooks;
    bool has_dispatch_mode;
    bool is_fake;          /**< a hook is */
    bool is_asked_devices; /**< some hook is told device queries */
    bool has_fake_device;  /**< see me_fake_device() */
    me_node_hook *free_hooks;

    me_host_memory host;
    me_host_live host_live;
    me_module_tree tree;
    me_variables variables;
    me_pending_frees pending;
    me_block_ids blocks;
    me_storage *free_storages;
    me_interned_kind *kinds; /**< all that are known; see kind.h */
    me_recording recording;
    me_tensor *free_tensors; /**< linked through grad */
    me_tensor *workspaces[ME_THREADS][ME_STREAMS];
    me_tensor *lt_workspaces[ME_THREADS][ME_STREAMS];
    me_tensor *global_buffers[ME_DTYPE_COUNT];
    me_compiled compiled[ME_MAX_COMPILED];
    struct me_region *regions;     /**< all that are alive */
    struct me_region *packing;     /**< whose operations save holders */
    struct me_region *recomputing; /**< that runs again */
    void (*collect)(void *self, me_engine *e); /**< see me_collect_later() */
    void *collect_self;
    const struct me_saved_hooks *saved_hooks; /**< of what is saved; borrowed */
    bool is_stopped; /**< it was stopped early, me_region_is_stopped() */
    bool is_mute;    /**< the listener of launches hears nothing */
    me_tensor none;  /**< what operations return after a failure */

    me_tape tape;
};

/** A block, freed when its last reference goes; NULL after a failure. */
me_storage *me_storage_new(me_engine *e, const char *op, uint64_t bytes);
/** One more reference; NULL is allowed. */
void me_storage_retain(me_storage *storage);
/** One reference less; the last one frees the block, late if another stream
 *  uses it. NULL is allowed. */
void me_storage_release(me_engine *e, me_storage *storage);
/** Somebody works on what a collective wrote: it is waited for, and the input
 *  goes. NULL is allowed. */
void me_storage_await(me_engine *e, me_storage *storage);

/** An id for a block, and back with it. */
uint32_t me_block_new(me_engine *e);
void me_block_forget(me_engine *e, uint32_t block);
/** The block is this object's. */
void me_block_hold(me_engine *e, uint32_t block, me_storage *storage);
/** An object, with one reference, for a block that observers know. */
me_storage *me_storage_adopt(me_engine *e, const me_storage *like,
                             uint32_t block);
/** Its free has been asked for and completes with the next allocation. */
void me_storage_hold_back(me_engine *e, me_storage *storage);
/** The allocator looks at late frees at the start of each allocation. */
void me_complete_pending(me_engine *e);

/** A tensor object with one reference and nothing else; NULL on failure. */
me_tensor *me_tensor_new(me_engine *e);

/** The running frame owns one more reference of @p x. */
void me_frame_push(me_engine *e, me_tensor *x);

/** Write down an event for script_record.c, which turns recordings on. */
void me_record_event(me_engine *e, const me_event *event);

/** Somebody who is no attribute has let go of a tensor of the storage; NULL is
 *  allowed. */
void me_attribute_left(me_engine *e, const me_storage *storage);
/** A storage that callers handed to actions is freed. */
void me_attribute_freed(me_engine *e, const me_storage *storage);
/** Does anybody hold its block beside attributes? */
bool me_is_held_by_others(const me_tensor *x);

/** Give back the tree of modules. */
void me_modules_fini(me_engine *e);
/** The tree with its root. @return false without memory */
bool me_modules_init(me_engine *e);

#endif /* MEMEST_TENSOR_ENGINE_PRIVATE_H */
