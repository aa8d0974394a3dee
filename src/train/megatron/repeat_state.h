/**
 * @file
 * What is known of actions that are repeated, for repeat.c alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_REPEAT_STATE_H
#define MEMEST_TRAIN_MEGATRON_REPEAT_STATE_H

#include "nn/megatron/rope.h"
#include "train/megatron/repeat.h"

/** An output of a repeated action: what it is made like. */
typedef struct repeated_tensor {
    bool is_there;
    bool has_graph; /**< it is no leaf */
    uint32_t slot;
    me_tensor like;
    me_storage storage;
} repeated_tensor;

/** What one kind of action of a chunk did last. */
typedef struct repeated_action {
    me_script script;
    uint32_t id;
    bool is_proven;   /**< the last two recordings were the same */
    int32_t n_places; /**< actions of this kind in the order */
    int32_t n_failed; /**< recordings that failed */
    int32_t iteration;
    uint64_t calls_begin; /**< of collectives */
    uint64_t calls_end;
    repeated_tensor outputs[ME_ACTION_OUTPUTS];
    bool keeps_gradient; /**< of the output, or a view of it, for the weights */
    bool keeps_view;
    bool touches_ropes;         /**< it uses tables of angles */
    me_rope_cache ropes_before; /**< which of them there were, */
    me_rope_cache ropes_after;  /**< and are then */
    uint64_t n_amaxes[2];       /**< of FP8, as it ended: me_fp8_state's */
} repeated_action;

typedef struct repeated_chunk {
    int32_t n_run_now; /**< micro-batches that were run in this iteration */
    bool runs_all;     /**< all its micro-batches are run: recordings failed */
} repeated_chunk;

typedef struct repeated_microbatch {
    bool is_repeated; /**< not run */
    int32_t place; /**< among the chunk's backwards, or halves of them, in the
                      order: the first ones are run */
    me_tensor *input; /**< of its forward; borrowed: the caller holds it until
                         its gradient is made */
    me_blocks kept;   /**< between its actions */
    me_tensor *gradient; /**< of the output, kept for a weight gradient that is
                            repeated; owned */
    me_storage *gradient_storage; /**< the same for one that is run; borrowed */
} repeated_microbatch;

typedef struct me_repeats {
    bool is_off;
    repeated_chunk *chunks;
    repeated_action *actions;          /**< chunk x kinds */
    repeated_microbatch *microbatches; /**< chunk x micro-batches */
    int32_t n_microbatches;
    uint32_t n_ids;
    me_action_kind kind; /**< of the running action */
    int32_t chunk;
    int32_t microbatch;
    bool is_repeated;
    me_tensor **output; /**< where the caller holds the backward's output */
    me_script_inputs inputs;
    uint32_t gradient_refs; /**< of the gradient when the action began */
    uint32_t gradient_storage_refs;
    uint64_t calls;
    me_rope_cache ropes; /**< when the action began */
} me_repeats;

#endif /* MEMEST_TRAIN_MEGATRON_REPEAT_STATE_H */
