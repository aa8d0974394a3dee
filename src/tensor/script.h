/**
 * @file
 * What an action of a rank's program does, written down as it runs, so that
 * the like actions of later micro-batches need not be run: observers are told
 * the events again with other blocks, in the order in which they would have
 * come. The allocator places every one of them as it always does; tensors and
 * the tape are spared.
 *
 * A block is a slot of the script: those that the action finds come first
 * (the caller's three tensors, then what the micro-batch's actions before it
 * have kept), then those that it makes, in order of birth. An action that
 * touches any other block cannot be written down.
 *
 * The program promises that the action depends on its number in nothing but
 * the micro-batch of its events and the names of its points; whoever uses
 * scripts sees two alike before it believes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_SCRIPT_H
#define MEMEST_TENSOR_SCRIPT_H

#include "tensor/engine.h"

enum {
    ME_SCRIPT_INPUTS = 3 /**< of the caller that an action may work on */
};

#define ME_SCRIPT_NO_SLOT  UINT32_MAX
#define ME_SCRIPT_NO_EVENT UINT32_MAX

/** Ids of blocks; all zero is none. */
typedef struct me_blocks {
    uint32_t *ids; /**< owned */
    uint32_t count;
    uint32_t capacity;
} me_blocks;

/** Where a script's module is the program's, which may be another each time. */
typedef enum me_script_turn {
    ME_SCRIPT_EVENT, /**< no turn */
    ME_SCRIPT_THERE, /**< switch from it to `event.module` */
    ME_SCRIPT_BACK   /**< and from `event.module` to it */
} me_script_turn;

/** An event of a script; `event.block` is stale. */
typedef struct me_script_event {
    me_event event;
    uint32_t slot; /**< ME_SCRIPT_NO_SLOT: of no block */
    bool passes;   /**< its block comes and goes within the action */
    bool is_late;  /**< free: completed by the next allocation */
    bool is_outer; /**< its module is the program's */
    uint8_t turn;  /**< me_script_turn */
} me_script_event;

/** A stretch of events in which nobody looks at anybody else, and what comes
 *  after it: up to where it reaches in each of the script's lists. */
typedef struct me_script_stretch {
    uint32_t ops_end;
    uint32_t steps_end;
    uint32_t lasting_end;
    uint32_t event; /**< that comes after it alone; or ME_SCRIPT_NO_EVENT */
    bool completes; /**< its first alloc completes what is pending */
} me_script_stretch;

/** An event of a stretch. */
typedef struct me_script_step {
    uint32_t event;
    bool completes; /**< the free that it asks for, now */
} me_script_step;

/** A script in stretches; all zero: not divided yet. */
typedef struct me_script_stretches {
    me_script_stretch *items; /**< owned */
    uint32_t count;
    me_block_op *ops;        /**< of blocks alone; owned */
    uint32_t *op_events;     /**< where they come from; owned */
    bool *holds;             /**< the free stays pending; owned */
    me_script_step *steps;   /**< all; owned */
    bool goes_back;          /**< it ends where it began, whatever that is */
    me_script_step *lasting; /**< without blocks that come and go within the
                                  action, and without modules; owned */
} me_script_stretches;

/** A module that events of a script enter more often than they leave it. */
typedef struct me_script_entered {
    me_module_id module;
    int32_t times; /**< below 0: they leave it more often */
} me_script_entered;

/** One action; all zero is none. */
typedef struct me_script {
    me_script_event *events; /**< owned */
    uint32_t n_events;
    uint32_t n_inputs; /**< slots that are not of its own making */
    uint32_t n_slots;
    uint32_t *ids;  /**< blocks of the slots as it was last told; owned */
    uint32_t *kept; /**< slots that it leaves to the micro-batch; owned */
    uint32_t n_kept;
    bool is_freed[ME_SCRIPT_INPUTS]; /**< the caller's block has gone */
    bool is_recategorized[ME_SCRIPT_INPUTS];
    uint8_t category[ME_SCRIPT_INPUTS]; /**< me_category it then has */
    me_script_entered *entered; /**< by its events without turns; owned */
    uint32_t n_entered;
    me_repeat_mark *marks; /**< owned */
    uint32_t n_marks;
    me_work work[ME_PHASE_COUNT];
    uint64_t place; /**< where the program is before and after it, without its
                         tensors */
    me_module_id module; /**< that ran when it was written down */
    me_module_id module_after;
    bool stays_outer;   /**< it switched to that module before any other: to the
                             program's, whatever that is, or to this one? */
    bool follows_outer; /**< to the program's; the caller knows */
    bool allocates;
    bool enters_first; /**< a module, before it allocates */
    bool is_balanced;  /**< see me_repeated */
    me_script_stretches stretches;
} me_script;

/** What there is when an action begins. */
typedef struct me_script_inputs {
    me_storage *tensors[ME_SCRIPT_INPUTS]; /**< NULL: none */
    uint32_t blocks[ME_SCRIPT_INPUTS];     /**< their ids then */
    const me_blocks *kept;
} me_script_inputs;

/** What the program does itself in an action that is not run. */
typedef struct me_script_part {
    /** @param name  what a point was called when it was written down
     *  @return what it is called this time */
    const char *(*name)(void *self, const char *name);
    /** The action lets go of the caller's tensor @p index, and nobody else held
     *  it when this was written down. */
    void (*release)(void *self, uint32_t index);
    void *self;
    bool is_usual; /**< nobody else does this time */
} me_script_part;

/** Do all observers know what to do with actions that are told again, and does
 *  nobody hook into operations, of which there are none then? */
bool me_script_can_tell(const me_engine *e);

/** Write down what happens from now on. Local. */
void me_script_begin(me_engine *e);

/**
 * The action ends.
 *
 * @param restores    its end switches to the module that ran before it
 * @param inputs       what there was when it began; `tensors` may have gone
 *                    since, but not their objects
 * @param handed_out  storages that are not kept but the caller's from now on,
 *                    ended by NULL
 * @param slots_out   their slots
 * @param script_out  to be given back; not touched unless it could be written
 * @return could it?
 */
bool me_script_end(me_engine *e, bool restores, const me_script_inputs *inputs,
                   const me_storage *const *handed_out, uint32_t *slots_out,
                   me_script *script_out);

/** Do both do the same? Points are not compared. Local. */
bool me_script_is_same(const me_script *a, const me_script *b);

/**
 * Tell the events again; `ids` of the script are then its blocks.
 *
 * @param id  the same for all scripts that are the same
 * @return false: the program is not where it was when the script was written,
 *         and nothing is told; or the engine has failed
 */
bool me_script_tell(me_engine *e, me_script *script, uint32_t id,
                    const me_script_inputs *inputs, const me_script_part *part);

/** What the micro-batch has after the script was told. @return false without
 *  memory */
bool me_script_keep(me_engine *e, const me_script *script, me_blocks *kept);

/** @name for script.c and script_record.c alone
 *  @{ */
/** Divide into stretches, once. @return false without memory */
bool me_script_divide(me_script *s);
/** Give the stretches back. */
void me_script_stretches_fini(me_script_stretches *stretches);
/** Where the program is, without its tensors and its module. */
uint64_t me_script_place(const me_engine *e);
/** The first slots' blocks. */
void me_script_bind(me_script *s, const me_script_inputs *inputs);
/** @} */

/** Give back. Local. */
void me_script_fini(me_script *script);
void me_blocks_fini(me_blocks *blocks);

/** A tensor of the shape, type and storage of @p like, whose block observers
 *  know as @p block; one reference. NULL after a failure. */
me_tensor *me_tensor_adopt(me_engine *e, const me_tensor *like,
                           const me_storage *storage, uint32_t block);

#endif /* MEMEST_TENSOR_SCRIPT_H */
