/**
 * @file
 * A transformer layer and the block of layers that a model chunk holds
 * (core/transformer/transformer_layer.py, transformer_block.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TRANSFORMER_H
#define MEMEST_NN_MEGATRON_TRANSFORMER_H

#include "nn/checkpoint.h"
#include "nn/megatron/cuda_graph.h"
#include "nn/megatron/fine_offload.h"
#include "nn/megatron/mixer.h"
#include "nn/megatron/norm.h"
#include "nn/module_hooks.h"

/** Norm, mixer, for some models a second norm, and residual step. */
typedef struct me_sublayer {
    bool has_norm;   /**< else the mixer has it */
    bool keeps_norm; /**< whose output is not run again */
    me_norm norm;
    bool has_post_norm; /**< one after the mixer, as Gemma has it */
    me_norm post_norm;
    const me_mixer *mixer;
    me_offload_module norm_group; /**< the norm's, if the job offloads it */
    int32_t number;               /**< of its layer */
    void *self;                   /**< the mixer's module; of the engine */
    me_section norm_section;      /**< these: when recomputed */
    me_section mixer_section;
} me_sublayer;

typedef struct me_transformer_layer {
    me_module_id module;
    int32_t
        number; /**< place in the model from 0 on; -1: none of the decoder's */
    me_sublayer attention;
    me_sublayer mlp;
    const me_module_hooks *hooks; /**< borrowed; NULL: none */
    me_graph_module *graph;       /**< as which it is captured, or NULL */
} me_transformer_layer;

typedef struct me_transformer_block {
    me_module_id module;
    me_transformer_layer *layers; /**< owned by the engine */
    int32_t num_layers;
    me_section *sections; /**< of full recomputation */
    bool pre_process;     /**< an embedding is before it */
    bool has_final_layernorm;
    me_norm final_layernorm;
    struct me_cpu_offload *offload; /**< of what its layers save, or NULL */
    struct me_cpu_offload_v1 *offload_v1; /**< the same, by the older path */
    me_tensor *input_tensor; /**< what a pipeline handed in; owned */
} me_transformer_block;

/** The parameters of a layer below @p module, in Megatron's order. @p number is
 *  its place in the model from 0 on, where depths of multi-token prediction come
 *  behind the decoder's layers; it says whether the layer has experts. */
void me_transformer_layer_create(me_nn *nn, me_module_id module, int32_t number,
                                 me_transformer_layer *layer);

/** Let go of what a layer holds beside its parameters. */
void me_transformer_layer_fini(me_engine *e, me_transformer_layer *layer);

/** As me_transformer_block_forward(), of one layer. */
me_tensor *me_transformer_layer_forward(me_nn *nn,
                                        const me_transformer_layer *layer,
                                        me_tensor *x, me_tensor *mask,
                                        me_tensor *angles);

/** @name Parts of a layer, for schedules that run them apart
 *  @{ */
/** _forward_attention(): (s, b, h) to (s, b, h). */
me_tensor *me_layer_attention(me_nn *nn, const me_transformer_layer *layer,
                              me_tensor *x, const me_mixer_inputs *inputs);
/** _forward_mlp(). */
me_tensor *me_layer_mlp(me_nn *nn, const me_transformer_layer *layer,
                        me_tensor *x, const me_mixer_inputs *inputs);
/**
 * The norm before experts.
 *
 * @param x               in: what it is of; out: what stands for that from then
 *                        on, a variable of the running frame if it is another
 * @param group           to be committed once the residual has been added
 * @param checkpoint_out  if it is run again, else NULL
 */
me_tensor *me_layer_mlp_norm(me_nn *nn, const me_transformer_layer *layer,
                             me_tensor **x, me_offload_group *group,
                             me_output_checkpoint **checkpoint_out);
/** mlp_bda() of experts: residual + dropout(x). */
me_tensor *me_layer_add_residual(me_nn *nn, me_tensor *x, me_tensor *residual);
/** @} */

/** Layers @p first_layer and following; the final norm on the last stage. */
void me_transformer_block_create(me_nn *nn, me_module_id parent,
                                 int32_t first_layer, int32_t num_layers,
                                 bool has_final_layernorm,
                                 me_transformer_block *block);

/** Let go of the input that a pipeline handed in. */
void me_transformer_block_fini(me_engine *e, me_transformer_block *block);

/**
 * (s, b, h) to (s, b, h), rows s/t under sequence parallelism.
 *
 * @param mask    or NULL
 * @param angles  of the rotary embedding, or NULL
 */
me_tensor *me_transformer_block_forward(me_nn *nn, me_transformer_block *block,
                                        me_tensor *x, me_tensor *mask,
                                        me_tensor *angles);

#endif /* MEMEST_NN_MEGATRON_TRANSFORMER_H */
