/**
 * @file
 * Transformer Engine's linear layers, and what they have in common with the
 * operations that it fuses: communication over tensor ranks, and the gradient of
 * a weight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_LINEAR_H
#define MEMEST_NN_MEGATRON_TE_LINEAR_H

#include "nn/megatron/linear.h"
#include "nn/megatron/te_state.h"
#include "tensor/autograd.h"

/** TELinear, TEColumnParallelLinear and TERowParallelLinear: (…, in) to
 *  (…, out). */
me_tensor *me_te_linear(me_nn *nn, const me_linear *linear, me_tensor *x);

/** TELayerNormColumnParallelLinear: the same of the norm's output. */
me_tensor *me_te_layer_norm_linear(me_nn *nn, const me_linear *linear,
                                   me_tensor *x);

/** Are rows gathered before a column-parallel layer and scattered after a
 *  row-parallel one? */
bool me_te_is_sequence_parallel(const me_nn *nn, const me_linear *linear);

/** Do tensor ranks share the layer? */
bool me_te_is_tensor_parallel(const me_nn *nn, const me_linear *linear);

/** The rows of all tensor ranks: (s/t, b, h) to (s, b, h), a new variable. */
me_tensor *me_te_gather(me_nn *nn, const me_tensor *x);

/**
 * A forward's output over the tensor ranks: of a row-parallel layer its rows are
 * scattered, or it is summed in place.
 *
 * @param product    of the layer: (s, b, h)
 * @param scattered  where its rows arrive beside the product (a user buffer's),
 *                   or NULL
 * @param whole_out  @p product, to be dropped, where the output is another
 *                   variable; else NULL
 * @return (s/t, b, h) of scattered rows, else @p product
 */
me_tensor *me_te_reduce_output(me_nn *nn, const me_linear *linear,
                               me_tensor *product, me_tensor *scattered,
                               me_tensor **whole_out);

/**
 * An input's gradient over the tensor ranks, under way: of a column-parallel
 * layer whose input's rows were gathered they are scattered, else it is summed in
 * place.
 *
 * @return a new variable of scattered rows, else @p dx
 */
me_tensor *me_te_reduce_input_gradient(me_nn *nn, const me_linear *linear,
                                       me_tensor *dx);

/** What a weight's gradient is the product of. */
typedef struct me_te_factors {
    me_tensor *x;  /**< the layer's input, of all rows; of what stands in a user
                        buffer this rank's */
    me_tensor *gy; /**< its output's gradient, the same */
    me_te_workspace workspace; /**< of the product */
} me_te_factors;

/**
 * A weight's gradient: into the main gradient, a tensor, or later where the
 * backward is split.
 *
 * @param node  that has the weight as @p input
 * @return a new variable, or NULL where none is made now
 */
me_tensor *me_te_weight_gradient(me_nn *nn, const me_node *node, uint32_t input,
                                 me_te_factors factors,
                                 const me_linear *linear);

/** What the function returns for the weight: the dummy, if the main gradient has
 *  the gradient already, else @p gradient. */
me_tensor *me_te_returned_gradient(me_nn *nn, const me_node *node,
                                   uint32_t input, const me_linear *linear,
                                   me_tensor *gradient);

#endif /* MEMEST_NN_MEGATRON_TE_LINEAR_H */
