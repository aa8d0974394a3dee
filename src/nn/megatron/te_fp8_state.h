/**
 * @file
 * What Transformer Engine knows of FP8 while a model runs: in which context it is
 * (FP8GlobalStateManager, pytorch/quantization.py; activation_recompute_forward,
 * pytorch/distributed.py), and what each module keeps: histories of largest values
 * with scales, and its quantised weight (TransformerEngineBaseModule).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_FP8_STATE_H
#define MEMEST_NN_MEGATRON_TE_FP8_STATE_H

#include "nn/megatron/te_fp8.h"

/** A scale and its history, of all tensors of a module in one direction. */
typedef struct me_fp8_meta {
    me_tensor *history; /**< (steps, tensors) float32; owned */
    me_tensor *scale;   /**< (tensors) float32; owned */
} me_fp8_meta;

/** A copy of them that a forward leaves for its recomputation. */
typedef struct me_fp8_stash {
    struct me_fp8_stash *next;
    me_fp8_meta meta;
} me_fp8_stash;

/** What one module keeps; all zero: nothing yet. The engine's memory. */
typedef struct me_fp8_module {
    uint32_t n_forward;   /**< tensors that are scaled in the forward */
    uint32_t n_backward;  /**< and in the backward */
    me_fp8_meta forward;  /**< of delayed scaling */
    me_fp8_meta backward; /**< the same */
    me_fp8_meta updated;  /**< set aside while a forward runs again */
    me_fp8_stash *first;  /**< copies that wait, the oldest first */
    me_fp8_stash **end;
    bool is_reduced;   /**< its largest values are among those to reduce */
    int32_t iteration; /**< in which the weight was quantised last, + 1 */
    me_quantized
        weight; /**< of a parameter that is not quantised itself; owned */
    bool keeps_columns;         /**< the weight's own quantizer makes columns */
    struct me_fp8_module *next; /**< of the process */
} me_fp8_module;

/** The process's FP8. */
typedef struct me_fp8_state {
    bool is_enabled;      /**< in an fp8_autocast */
    int32_t depth;        /**< contexts that are open */
    bool is_init;         /**< in an fp8_model_init: weights are made in FP8 */
    bool is_first;        /**< no module has run in the outermost context yet */
    bool was_first;       /**< is_first as sections begin, all of them alike */
    bool is_recompute;    /**< in a section that is run again later */
    bool is_second;       /**< it is run again */
    uint64_t n_amaxes[2]; /**< to reduce, of the forward and of the backward */
    me_fp8_module *modules;
    me_fp8_stash *free_stashes;
} me_fp8_state;

/** Let go of what all modules keep. */
void me_fp8_state_fini(me_engine *e, me_fp8_state *state);

/** A module that has to do with FP8, or NULL where the job has none.
 *
 *  @param n_gemms  products: 1 of a linear layer, 3 of attention */
me_fp8_module *me_fp8_module_create(me_nn *nn, uint32_t n_gemms);

/** Does what runs now compute in FP8? */
bool me_fp8_is_on(const me_nn *nn);

/** Where a context is: around all layers, which delayed scaling asks for,
 *  around each, which the others have, or either. */
typedef enum me_fp8_context {
    ME_FP8_CONTEXT_OUTER,
    ME_FP8_CONTEXT_INNER,
    ME_FP8_CONTEXT_ANY
} me_fp8_context;

/** get_fp8_context() of a layer, from 0 on, or of all: -1; nothing for one
 *  that is in bf16, or where the recipe has its context elsewhere. @return
 *  what held before */
me_fp8_state me_fp8_enter(me_nn *nn, me_fp8_context where, int32_t layer);
void me_fp8_exit(me_nn *nn, const me_fp8_state *before);

/** fp8_model_init() of a layer. @return was it so before? */
bool me_fp8_init_enter(me_nn *nn, int32_t layer);
void me_fp8_init_exit(me_nn *nn, bool before);

/** Does a section run for the first time that is run again later, under a
 *  context that is around it? */
bool me_fp8_is_first_run(const me_nn *nn);

/** Is it delayed scaling, whose context is around all layers? */
bool me_fp8_has_outer_context(const me_nn *nn);

/** Does a layer compute in FP8? */
bool me_fp8_is_layer(const me_nn *nn, int32_t layer);

/** te_checkpoint(): around a section, in the forward and when it is run again.
 *  @param is_inside  of a context, in the forward
 *  @return what held before */
me_fp8_state me_fp8_checkpoint_enter(me_nn *nn, bool is_inside);
void me_fp8_checkpoint_exit(me_nn *nn, const me_fp8_state *before);

/** prepare_forward() of a module that computes in FP8; NULL: there is none. */
void me_fp8_prepare_forward(me_nn *nn, me_fp8_module *module);

/** Metadata of a module are made, if there are none yet. */
void me_fp8_ensure_meta(me_nn *nn, me_fp8_module *module);

/** is_first_fp8_module(): does the module that records now reduce what the
 *  backward has found, when its own is over? @param restores  that it is no
 *  module of te.ops, which asks no matter whether a section runs again */
bool me_fp8_takes_first(me_nn *nn, bool restores);

/** reduce_and_update_fp8_tensors(). */
void me_fp8_reduce(me_nn *nn, bool is_forward);

/** The weight as products take it, quantised if this is the first micro-batch
 *  of a step: quantize_weight(). @param columns  of a weight that is quantised
 *  here
 *  @param made_out  what is to be kept by me_fp8_keep_weight() once the
 *  function has returned */
void me_fp8_prepare_weight(me_nn *nn, me_fp8_module *module,
                           const me_parameter *parameter, bool columns,
                           me_quantized *made_out);
void me_fp8_keep_weight(me_nn *nn, me_fp8_module *module, bool columns,
                        const me_quantized *made);

/** The weight's columns for the input's gradient. */
void me_fp8_prepare_weight_columns(me_nn *nn, me_fp8_module *module,
                                   const me_parameter *parameter);

/** init_fp8_metadata() of a module that is being made, if weights are quantised as
 *  they are made; of others the first forward does it. */
void me_fp8_init_meta(me_nn *nn, me_fp8_module *module);

/** A parameter becomes a quantised one, if weights are made so. */
void me_fp8_quantize_parameter(me_nn *nn, me_fp8_module *module,
                               me_parameter *parameter);
/** The same of one that had no memory then, and has it now. */
void me_fp8_quantize_made(me_nn *nn, me_parameter *parameter);

#endif /* MEMEST_NN_MEGATRON_TE_FP8_STATE_H */
