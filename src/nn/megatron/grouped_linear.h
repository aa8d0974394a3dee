/**
 * @file
 * One linear layer for each of a rank's experts, all of whose products are made
 * at once (Transformer Engine's GroupedLinear; TEGroupedLinear in
 * core/extensions/transformer_engine.py). What there is to communicate the
 * dispatcher does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_GROUPED_LINEAR_H
#define MEMEST_NN_MEGATRON_GROUPED_LINEAR_H

#include "nn/megatron/linear.h"

typedef struct me_grouped_linear {
    me_nn *nn; /**< whose layer it is; borrowed, does not move */
    me_module_id module;
    uint32_t count;            /**< experts */
    me_parameter **weights;    /**< of each, (outputs, inputs); of the engine */
    me_parameter **biases;     /**< of each, (outputs); NULL: none */
    bool skip_bias_add;        /**< the caller adds the biases */
    bool save_original_input;  /**< in FP8 it saves its input as it is */
    struct me_fp8_module *fp8; /**< what Transformer Engine keeps of it; the
                                    engine's; NULL: nothing */
    struct me_fp8_module **weights_fp8; /**< and of each weight */
    struct me_quantized *parts; /**< room for quantised rows of each expert,
                                     and then weights */
    me_tensor **inputs; /**< room for the list of a node's inputs: x, weights,
                             biases; of the engine */
} me_grouped_linear;

/**
 * Its parameters.
 *
 * @param count            experts of this rank
 * @param is_row_parallel  cut along its inputs over expert tensor ranks, else
 *                         along its outputs
 * @param linear_out       must not move afterwards
 */
void me_grouped_linear_create(me_nn *nn, const me_linear_spec *spec,
                              uint32_t count, bool is_row_parallel,
                              me_grouped_linear *linear_out);

#endif /* MEMEST_NN_MEGATRON_GROUPED_LINEAR_H */
