/**
 * @file
 * A linear layer's weight as products in FP8 take it: kept quantised by its module
 * from the first micro-batch of a step on, or, under FSDP2, which gathers it for
 * each pass, quantised for each (is_fsdp2 of Transformer Engine's
 * module/linear.py and module/layernorm_linear.py). Of a weight that is a
 * quantised parameter nothing is made.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_FP8_WEIGHT_H
#define MEMEST_NN_MEGATRON_TE_FP8_WEIGHT_H

#include "nn/megatron/linear.h"
#include "nn/megatron/te_fp8.h"

/** Does the module keep it? */
bool me_fp8_keeps_weight(const me_nn *nn);

/**
 * For the forward's product.
 *
 * @param columns   of one that is quantised here
 * @param made_out  the caller's until me_fp8_linear_drop() or
 *                  me_fp8_linear_keep() has had it
 */
void me_fp8_linear_weight(me_nn *nn, const me_linear *linear, bool columns,
                          me_quantized *made_out);

/** The function's name of a weight that nobody keeps goes. */
void me_fp8_linear_drop(me_nn *nn, me_quantized *weight);

/** The function has returned: the module keeps @p made.
 *  @param node  of the function, or NULL: @p made was its output as well */
void me_fp8_linear_keep(me_nn *nn, const me_linear *linear, me_node *node,
                        bool columns, const me_quantized *made);

/**
 * The gradient of a quantised weight that a layer's forward made, and returned for
 * its module to keep (`new_weight_workspace`). Nobody makes one, so that autograd
 * gives the backward zeros (PyNode::apply() of torch/csrc/autograd), which are
 * read by nobody and go last.
 *
 * @param node  of the layer, whose forward me_fp8_linear_keep() ended
 * @param gy    gradient of the layer's output
 * @return zeros (out, in) in the model's type, for me_drop(); NULL: the weight was
 *         there already
 */
me_tensor *me_fp8_linear_zeros(me_nn *nn, const me_node *node,
                               const me_tensor *gy);

/** For the input gradient's product, the module's `weight`. */
void me_fp8_linear_weight_columns(me_nn *nn, const me_linear *linear);

/** clear_columnwise_cache(): the product is made, and nobody keeps its weight. */
void me_fp8_linear_clear_columns(me_nn *nn, const me_linear *linear);

#endif /* MEMEST_NN_MEGATRON_TE_FP8_WEIGHT_H */
