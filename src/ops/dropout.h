/**
 * @file
 * Dropout, alone and fused with bias and residual (aten/native/cuda/Dropout.cu;
 * Megatron's fusions/fused_bias_dropout.py, compiled). Shapes are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_DROPOUT_H
#define MEMEST_OPS_DROPOUT_H

#include "tensor/tensor.h"

/**
 * `torch.nn.functional.dropout`: a mask of one byte an element, and the output.
 *
 * @param p  probability; 0 returns @p x itself and records nothing
 */
me_tensor *me_dropout(me_engine *e, me_tensor *x, double p);

/**
 * The compiled `residual + dropout(x + bias)`: one output, and with dropout
 * the mask, which is all that it saves, and only if @p x or @p bias wants a
 * gradient.
 *
 * @param bias  NULL if there is none
 */
me_tensor *me_fused_bias_dropout_add(me_engine *e, me_tensor *x,
                                     me_tensor *bias, me_tensor *residual,
                                     double p);

/** The compiled `x.add_(residual)` of evaluation, which has no dropout.
 *  @return @p x */
me_tensor *me_fused_add_in_place(me_engine *e, me_tensor *x,
                                 me_tensor *residual);

#endif /* MEMEST_OPS_DROPOUT_H */
