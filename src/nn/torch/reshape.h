/**
 * @file
 * `.view(…)` and `.reshape(…)` of a forward, whose extents the user has written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_RESHAPE_H
#define MEMEST_NN_TORCH_RESHAPE_H

#include "model/layer.h"
#include "tensor/tensor.h"

/**
 * @param x  ME_EXPRESSION_VIEW or ME_EXPRESSION_RESHAPE
 * @param a  its operand, evaluated
 * @return a tensor of the running frame; where the elements do not fill the
 *         extents, or a view would have to copy, a failure of the engine
 */
me_tensor *me_reshape_written(me_engine *e, const me_expression *x,
                              me_tensor *a);

#endif /* MEMEST_NN_TORCH_RESHAPE_H */
