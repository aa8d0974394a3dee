/**
 * @file
 * _GroupedLinear (transformer_engine/pytorch/module/grouped_linear.py): linear
 * layers of a rank's experts as one function.
 *
 * Left out: cuBLASLt's grouped products
 * (NVTE_GROUPED_LINEAR_USE_FUSED_GROUPED_GEMM), single_grouped_weight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_GROUPED_H
#define MEMEST_NN_MEGATRON_TE_GROUPED_H

#include "nn/megatron/grouped_linear.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

struct me_weight_work;

/** (R, inputs) to (R, outputs), rows sorted by expert, of each so many as
 *  @p tokens says; the bias added unless the caller does it. */
me_tensor *me_te_grouped_linear(me_nn *nn, const me_grouped_linear *linear,
                                me_tensor *x, const uint64_t *tokens);

/** @name Parts that are the same in FP8
 *  @{ */
/** The node of a forward, which saves @p n_saved tensors more than a node has
 *  room for. @return NULL without a tape */
me_node *me_te_grouped_record(me_nn *nn, const me_op *op,
                              const me_grouped_linear *linear, me_tensor *x,
                              uint32_t n_saved);
/** Room for the weights' gradients, or NULL: they go to the main gradients, or are
 *  tensors of their own that are made later. */
me_tensor *me_te_grouped_pack(me_nn *nn, const me_grouped_linear *linear);
/** Products of the weights' gradients over @p rows rows.
 *  @param gx  gets the biases' gradients; NULL: they are there */
void me_te_grouped_wgrad(me_nn *nn, const me_grouped_linear *linear,
                         me_operands operands, uint64_t rows, me_tensor **gx);
/** What the backward returns for the weights: views of @p packed or a dummy. */
void me_te_grouped_return(me_nn *nn, const me_grouped_linear *linear,
                          me_tensor *packed, me_tensor **gx);
/** @} */

/** @name Gradients that wait
 *  @{ */
/** Do they? */
bool me_te_grouped_keeps(const me_nn *nn);
/** Keep weight @p index's. @param packed  or NULL @param work  operands and rows;
 *  the rest is filled in */
void me_te_grouped_keep(me_nn *nn, const me_grouped_linear *linear,
                        const me_node *node, uint32_t index, me_tensor *packed,
                        struct me_weight_work *work);
/** All have been kept: @p packed is dropped.
 *  @param gx  gets what the backward returns for them: views of @p packed, to which
 *             nothing is written yet, so that autograd clones them; or a dummy is
 *             made */
void me_te_grouped_kept(me_nn *nn, const me_grouped_linear *linear,
                        me_tensor *packed, me_tensor **gx);
/** @} */

#endif /* MEMEST_NN_MEGATRON_TE_GROUPED_H */
