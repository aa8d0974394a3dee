/**
 * @file
 * A script: the events of one action (a micro-batch's forward or backward),
 * recorded as it runs, so that the same action of later micro-batches need not
 * be run. Observers are told the script's events with the ids of other blocks,
 * in the order in which they would have come. The allocator places every block
 * as it always does; what is saved is running tensors and the tape.
 *
 * A script knows blocks by slots: first those of its inputs (up to three
 * tensors of the caller, then what earlier actions of the micro-batch have
 * kept), then those that it allocates, in order. An action that touches any
 * other block cannot be recorded, unless modules keep it from one micro-batch
 * to the next (me_attribute_set()): who lets go of such a block last, differs.
 *
 * Actions of one kind and chunk may differ in nothing but the micro-batch of
 * their events and the names of their points. That is checked, not assumed: a
 * script is used once two recordings in a row were the same.
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
    uint32_t *ids;         /**< owned */
    me_storage **storages; /**< of blocks that attributes of modules hold as
                                well, a reference of each if they were told;
                                else NULL; owned */
    uint32_t count;
    uint32_t capacity;
} me_blocks;

/** A switch to or from the module that runs around the action, which may be
 * another one at each repetition. */
typedef enum me_script_turn {
    ME_SCRIPT_EVENT, /**< an ordinary event */
    ME_SCRIPT_THERE, /**< from that module to `event.module` */
    ME_SCRIPT_BACK   /**< from `event.module` back to it */
} me_script_turn;

/** Who lets go of a block that several hold, in place of its free: whether it is
 *  freed then depends on the others, which differ from one repetition to the
 *  next. */
typedef enum me_script_drop {
    ME_SCRIPT_NO_DROP,  /**< an ordinary event */
    ME_SCRIPT_NOTHING,  /**< nobody, after all */
    ME_SCRIPT_KEPT,     /**< the micro-batch, of one of the blocks it keeps */
    ME_SCRIPT_ATTRIBUTE /**< an attribute of a module, of what an action before
                             gave it */
} me_script_drop;

/** An event of a script; `event.block` is stale. */
typedef struct me_script_event {
    me_event event;
    uint32_t slot; /**< ME_SCRIPT_NO_SLOT: of no block */
    bool passes;   /**< its block is allocated and freed within the action */
    bool is_late;  /**< free: completed by the next allocation */
    bool is_outer; /**< it happens in the module around the action */
    bool is_apart; /**< of a round: it is of no micro-batch */
    int32_t microbatch; /**< of a round: less the one it counts from */
    uint8_t turn;       /**< me_script_turn */
    uint8_t drop;       /**< me_script_drop */
    bool frees;         /**< drop: its block was freed when it was recorded */
    me_tensor **attribute; /**< of a drop */
} me_script_event;

/** An attribute of a module that the action gives a tensor, made like this. */
typedef struct me_script_attribute {
    me_tensor **attribute;
    me_tensor like;
    bool has_graph; /**< it holds the action's input */
    me_storage storage;
    uint32_t slot;
    uint32_t kept; /**< place among the blocks that the micro-batch keeps, or
                        ME_SCRIPT_NO_SLOT */
} me_script_attribute;

/** A stretch: events in which no observer reads another's state, so that each
 * may take all of them before the next observer does. Its ends in the script's
 * lists, and the one event that follows it, which is told by itself. */
typedef struct me_script_stretch {
    uint32_t ops_end;
    uint32_t steps_end;
    uint32_t lasting_end;
    uint32_t event; /**< that follows; or ME_SCRIPT_NO_EVENT */
    bool completes; /**< its first alloc completes pending frees */
} me_script_stretch;

/** An event of a stretch. */
typedef struct me_script_step {
    uint32_t event;
    bool completes; /**< the free that it asks for, now */
} me_script_step;

/** A script's events as stretches, in three lists for three kinds of observers;
 * all zero: not divided yet. */
typedef struct me_script_stretches {
    me_script_stretch *items; /**< owned */
    uint32_t count;
    me_block_op *ops;        /**< for observers of blocks alone; owned */
    uint32_t *op_events;     /**< their events; owned */
    bool *holds;             /**< of each op: the free stays pending; owned */
    me_script_step *steps;   /**< every event; owned */
    bool goes_back;          /**< it ends in the module that it began in */
    me_script_step *lasting; /**< without blocks that are allocated and freed
                                within the action, and without modules; owned */
} me_script_stretches;

/** A module that a script's events do not enter and leave equally often. */
typedef struct me_script_entered {
    me_module_id module;
    int32_t times; /**< entered less left */
} me_script_entered;

/** One action; all zero is none. */
typedef struct me_script {
    me_script_event *events; /**< owned */
    uint32_t n_events;
    uint32_t n_inputs; /**< slots of blocks that are there when it begins */
    uint32_t n_slots;
    uint32_t *ids;  /**< of the slots' blocks at the last repetition; owned */
    uint32_t *kept; /**< slots whose blocks the micro-batch keeps; owned */
    uint32_t n_kept;
    bool is_freed[ME_SCRIPT_INPUTS]; /**< the caller's block has gone */
    bool is_recategorized[ME_SCRIPT_INPUTS];
    uint8_t category[ME_SCRIPT_INPUTS]; /**< me_category it then has */
    me_script_entered *entered; /**< by its events without turns; owned */
    uint32_t n_entered;
    me_script_attribute *attributes; /**< owned */
    uint32_t n_attributes;
    bool has_drops;
    bool frees_leaf; /**< an attribute lets go of the last graph that holds the
                          input of an earlier micro-batch */
    me_repeat_mark *marks; /**< owned */
    uint32_t n_marks;
    me_work work[ME_PHASE_COUNT];
    uint64_t place; /**< phase, category, stream, thread and the like, equal
                       before and after it */
    me_module_id module; /**< that ran when it was recorded */
    me_module_id module_after;
    bool stays_outer; /**< its first switch went to the module that ran already,
                         which the recording cannot tell from the module around
                         the action */
    bool follows_outer; /**< it was that: the caller knows */
    bool allocates;
    bool enters_first; /**< it enters a module before it allocates */
    bool has_actions;  /**< see me_repeated */
    bool is_balanced;  /**< see me_repeated */
    me_script_stretches stretches;
} me_script;

/** What an action works on, when it begins. */
typedef struct me_script_inputs {
    me_storage *tensors[ME_SCRIPT_INPUTS]; /**< NULL: none */
    uint32_t blocks[ME_SCRIPT_INPUTS];     /**< their ids then */
    const me_blocks *kept;
} me_script_inputs;

/** What the caller does itself for an action that is repeated. */
typedef struct me_script_part {
    /** @param name  the point's name in the recording
     *  @return its name this time */
    const char *(*name)(void *self, const char *name);
    /** The action lets go of the caller's tensor @p index, and nobody else held
     *  it when this was recorded. */
    void (*release)(void *self, uint32_t index);
    void *self;
    bool is_usual; /**< nobody else holds them this time either */
} me_script_part;

/** Can actions be repeated: do all observers take scripts, and are there no
 * hooks, which need operations? */
bool me_script_can_tell(const me_engine *e);

/** Record what happens from now on. Local. */
void me_script_begin(me_engine *e);

/**
 * The same of a round of a loop (tensor/round.h), which is no action: the program
 * itself is the same before and after it, so all blocks that modules keep are
 * blocks like others, and its events are of several micro-batches.
 *
 * @param microbatch  that its events' ones count from: one more in the next round
 *                    if they are; when it is told, it is the engine's
 */
void me_script_begin_round(me_engine *e, int32_t microbatch);

/**
 * The action ends.
 *
 * @param restores    its end switches to the module that ran before it
 * @param inputs      what it worked on; tensors may be freed by now, but their
 *                    objects are valid
 * @param handed_out  storages that are the caller's from now on, ended by NULL
 * @param slots_out   their slots
 * @param script_out  to be given back; set if true comes back
 * @return could the action be recorded?
 */
bool me_script_end(me_engine *e, bool restores, const me_script_inputs *inputs,
                   const me_storage *const *handed_out, uint32_t *slots_out,
                   me_script *script_out);

/** Do both scripts have the same events? Names of points may differ. Local. */
bool me_script_is_same(const me_script *a, const me_script *b);

/**
 * Tell the events again; `ids` of the script are then its blocks.
 *
 * @param id  the same for all scripts that are the same
 * @return false: the engine is in another state than when the script was
 *         recorded, and nothing is told; or the engine has failed
 */
bool me_script_tell(me_engine *e, me_script *script, uint32_t id,
                    const me_script_inputs *inputs, const me_script_part *part);

/** Set @p kept to what the micro-batch keeps after the script was told.
 *  @return false without memory */
bool me_script_keep(me_engine *e, const me_script *script, me_blocks *kept);

/**
 * A tensor that a told action has made and somebody holds.
 *
 * @param like     what it was when the action ran, as is @p storage
 * @param block    that it has now
 * @param leaf     the action's input, which its graph holds as long as the tensor
 *                 lives, whether the program around it is on the tape or not;
 *                 NULL: it has none
 * @return owned by the caller; NULL without memory
 */
me_tensor *me_script_make(me_engine *e, const me_tensor *like,
                          const me_storage *storage, uint32_t block,
                          me_tensor *leaf);

/** Give attributes of modules what the action gives them; call it after
 *  me_script_keep(). @param was_told  it was not run, so they have not got it
 *  @param leaf  its input, which graphs of attributes hold; or NULL */
void me_script_set_attributes(me_engine *e, const me_script *script,
                              bool was_told, me_tensor *leaf,
                              const me_blocks *kept);

/** @name for script*.c alone
 *  @{ */
/** Divide into stretches, once. @return false without memory */
bool me_script_divide(me_script *s);
/** Give the stretches back. */
void me_script_stretches_fini(me_script_stretches *stretches);
/** The engine's state without tensors and module, in bits. */
uint64_t me_script_place(const me_engine *e);
/** Will it free what the recorded one freed, so that it is usual? */
bool me_script_frees_as_recorded(const me_script *s, const me_blocks *kept);
/** Set the blocks of the input slots. */
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
