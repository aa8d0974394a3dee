/**
 * @file
 * Megatron-LM's linear layers: the weight is cut by columns or by rows over
 * the tensor-parallel ranks (core/tensor_parallel/layers.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_LINEAR_H
#define MEMEST_NN_MEGATRON_LINEAR_H

#include "nn/module_hooks.h"
#include "nn/nn.h"

/** Order of weight gradients that wait (backward_dw()): as their backwards came
 *  where turns are equal. */
enum {
    ME_TURN_FIRST,
    ME_TURN_LATENT, /**< into the width of experts */
    ME_TURN_QKV,    /**< or up to keys and values */
    ME_TURN_KV_DOWN,
    ME_TURN_Q_DOWN,
    ME_TURN_Q_UP,
    ME_TURN_PROJ,
    ME_TURN_MTP /**< of hidden states and embedding, before its layer */
};

/** What of a layer's communication over tensor ranks goes through Transformer
 *  Engine's user buffers, beside its products. */
typedef struct me_linear_overlap {
    bool gathers_input;           /**< column-parallel; with a norm before it,
                                        only where there is a tape */
    bool scatters_output;         /**< row-parallel */
    bool gathers_output_gradient; /**< row-parallel */
    bool scatters_input_gradient; /**< column-parallel, in pieces */
    bool bulk_dgrad; /**< the input is gathered again beside its gradient's
                          product */
    bool bulk_wgrad; /**< the gradient is made in the buffer, scattered beside
                          the weight's, and copied out of it */
} me_linear_overlap;

typedef struct me_linear {
    me_nn *nn; /**< whose layer it is; borrowed, does not move */
    me_module_id module;
    me_parameter *norm_weight; /**< of the norm before it, if it has one */
    me_parameter *norm_bias;
    me_parameter *weight;
    me_parameter *bias;   /**< NULL: none */
    bool is_row_parallel; /**< cut along its input, else along its output */
    bool is_expert;       /**< cut over expert tensor ranks; the dispatcher does
                               what there is to communicate */
    bool is_duplicated;   /**< each tensor rank has all, for its own rows */
    bool explicit_comm;   /**< the caller does what there is to communicate */
    bool skip_bias_add;   /**< the caller adds the bias */
    uint8_t turn; /**< among those of its part of a layer, if its weight's
                       gradient waits: an ME_TURN_ value */
    bool save_original_input;  /**< in FP8 it saves its input as it is, which
                                   another has saved already, where it can */
    struct me_fp8_module *fp8; /**< what Transformer Engine keeps of it; the
                                    engine's; NULL: no FP8 */
    struct me_deferred_gradients *deferred; /**< where its weight's gradients
                               wait; borrowed; NULL: they do not */
    const me_module_hooks *hooks;           /**< borrowed; NULL: none */
    me_linear_overlap overlap;
} me_linear;

/** How a linear layer is made; sizes are the whole layer's. */
typedef struct me_linear_spec {
    const char *name;
    me_module_id parent;
    uint64_t inputs;
    uint64_t outputs;
    bool has_norm; /**< it normalises its input (LayerNormLinear) */
    bool has_bias;
    bool skip_bias_add;
    bool save_original_input;
    bool is_expert;
    bool is_duplicated;
    bool explicit_comm;
    bool is_megatrons; /**< Megatron-LM's class, whatever the implementation */
} me_linear_spec;

/** Output cut over tensor ranks, unless duplicated; weight (outputs/t,
 *  inputs). */
me_linear me_column_linear_create(me_nn *nn, const me_linear_spec *spec);

/** Input cut over tensor ranks; weight (outputs, inputs/t). */
me_linear me_row_linear_create(me_nn *nn, const me_linear_spec *spec);

/**
 * (s, b, inputs) to (s, b, outputs/t). Under sequence parallelism the rows
 * are gathered first, into the buffer that all layers share.
 *
 * @param weight  to use instead of the layer's own (tied embeddings), or NULL
 */
me_tensor *me_column_linear(me_nn *nn, const me_linear *linear, me_tensor *x,
                            const me_parameter *weight);

/** (s, b, inputs/t) to (s, b, outputs), summed over tensor ranks: all-reduced,
 *  or reduce-scattered to (s/t, b, outputs) under sequence parallelism. */
me_tensor *me_row_linear(me_nn *nn, const me_linear *linear, me_tensor *x);

/** The rows of @p x, (s/t, b, inputs), of all tensor ranks, in the shared
 *  buffer. */
void me_gather_rows(me_nn *nn, const me_tensor *x, bool is_async);

/** Megatron's global memory buffer "mpu" of a dtype: at least @p shape's
 *  elements from now on; grown, never shrunk (core/utils.py). */
void me_global_buffer(const me_nn *nn, me_dtype dtype, me_shape shape);

#endif /* MEMEST_NN_MEGATRON_LINEAR_H */
