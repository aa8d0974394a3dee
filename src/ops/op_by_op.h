/**
 * @file
 * Functions that Megatron-LM hands to torch.compile (core/jit.py), run op by op
 * as they are with TORCH_COMPILE_DISABLE=1: their temporaries come back, and
 * where one is an autograd.Function it saves what it saved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_OP_BY_OP_H
#define MEMEST_OPS_OP_BY_OP_H

#include "tensor/tensor.h"

/** GeLUFunction: gelu(x + bias); saves x and the bias. */
me_tensor *me_op_by_op_bias_gelu(me_engine *e, me_tensor *x, me_tensor *bias);

/** SwiGLUFunction and BiasSwiGLUFunction: silu(first half) · second half of
 *  x + bias, x (…, 2f) to (…, f); saves x and the bias, which may be NULL. */
me_tensor *me_op_by_op_swiglu(me_engine *e, me_tensor *x, me_tensor *bias);

/** WeightedSwiGLUFunction: the same without a bias times a weight of each row, x
 *  (n, 2f) and weights (n, 1) to (n, f) of the type of x; saves both. */
me_tensor *me_op_by_op_weighted_swiglu(me_engine *e, me_tensor *x,
                                       me_tensor *weights);

/** `relu(x)²`; saves the result of relu. */
me_tensor *me_op_by_op_squared_relu(me_engine *e, me_tensor *x);

/** `x · sigmoid(1.702 x)`; saves x and the sigmoid. */
me_tensor *me_op_by_op_quick_gelu(me_engine *e, me_tensor *x);

#endif /* MEMEST_OPS_OP_BY_OP_H */
