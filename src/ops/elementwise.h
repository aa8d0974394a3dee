/**
 * @file
 * Element-wise operations: the output is made first, and dropped inputs die
 * when the caller drops them. Broadcast follows PyTorch, and operands that do not
 * broadcast fail the engine (ME_ERR_CONFIG); gradients of what was broadcast are
 * summed by the tape. Source: aten/native, TensorIterator.cpp, derivatives.yaml.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_ELEMENTWISE_H
#define MEMEST_OPS_ELEMENTWISE_H

#include "tensor/launch.h"
#include "tensor/tensor.h"

/** `a + b`; saves nothing; both gradients are the incoming one. */
me_tensor *me_add(me_engine *e, me_tensor *a, me_tensor *b);

/** `a - b`; saves nothing; the gradient of @p b is the incoming one negated. */
me_tensor *me_sub(me_engine *e, me_tensor *a, me_tensor *b);

/** `a ** 2`; saves @p a. */
me_tensor *me_square(me_engine *e, me_tensor *a);

/** `a * b`; saves each factor that the other's gradient needs. */
me_tensor *me_mul(me_engine *e, me_tensor *a, me_tensor *b);

/** `a += b`: in place, also where @p a is a view, whose base is then copied in the
 *  backward. @return @p a */
me_tensor *me_add_in_place(me_engine *e, me_tensor *a, me_tensor *b);

/** `a + number`; saves nothing; its gradient is the incoming one. */
me_tensor *me_add_number(me_engine *e, me_tensor *a);

/** `a.add_(number)`: in place, returns @p a. */
me_tensor *me_add_number_in_place(me_engine *e, me_tensor *a);

/** `a * number`: one gradient tensor. */
me_tensor *me_mul_number(me_engine *e, me_tensor *a);

/** `rsqrt(a)`; saves its result. */
me_tensor *me_rsqrt(me_engine *e, me_tensor *a);

/** `-a`. */
me_tensor *me_neg(me_engine *e, me_tensor *a);

/** `a / b`, b a scalar without gradient; saves the divisor. */
me_tensor *me_div(me_engine *e, me_tensor *a, me_tensor *b);

/** `a /= number`: in place, returns @p a. */
me_tensor *me_div_number_in_place(me_engine *e, me_tensor *a);

/** `a /= b`: in place, returns @p a; saves the divisor. */
me_tensor *me_div_in_place(me_engine *e, me_tensor *a, me_tensor *b);

/** `a.to(dtype)`: @p a itself if it has that dtype. */
me_tensor *me_cast(me_engine *e, me_tensor *a, me_dtype dtype);

/** A copy with the same strides, off the tape (`detach().clone()`). */
me_tensor *me_clone_detached(me_engine *e, const me_tensor *a);

/** An element-wise result of @p dtype that is not on the tape, of an operation
 *  that no dispatcher is asked of; @p event is static. */
me_tensor *me_pointwise(me_engine *e, const char *event, const me_tensor *a,
                        me_dtype dtype);

/** `relu(x)`; saves its result. */
me_tensor *me_relu(me_engine *e, me_tensor *x);

/** `x.relu_()`; saves what @p x is then. @return @p x */
me_tensor *me_relu_in_place(me_engine *e, me_tensor *x);

/** @name Activation functions; each saves its input
 *  @{ */
/** `silu(x)`. */
me_tensor *me_silu(me_engine *e, me_tensor *x);
/** `gelu(x)`. */
me_tensor *me_gelu(me_engine *e, me_tensor *x);
/** `x · sigmoid(1.702 x)` as one compiled function. */
me_tensor *me_quick_gelu(me_engine *e, me_tensor *x);
/** `x.clamp(max = …)`, with @p has_min from below as well; saves x. */
me_tensor *me_clamp(me_engine *e, me_tensor *x, bool has_min);
/** `relu(x)²` as one compiled function. */
me_tensor *me_squared_relu(me_engine *e, me_tensor *x);
/** @} */

/** @name Compiled fusions: one output, no intermediate tensors
 *  @{ */
/** gelu(x + bias); saves x and the bias. */
me_tensor *me_bias_gelu(me_engine *e, me_tensor *x, me_tensor *bias);
/** silu(first half) · second half of x + bias, x (…, 2f) to (…, f); saves x
 *  and the bias, which may be NULL. */
me_tensor *me_fused_swiglu(me_engine *e, me_tensor *x, me_tensor *bias);
/** The same without a bias times a weight of each row, x (n, 2f) and weights
 *  (n, 1) to (n, f); saves both. Weights that are not aligned to 16 bytes are
 *  copied for it. */
me_tensor *me_fused_weighted_swiglu(me_engine *e, me_tensor *x,
                                    me_tensor *weights, bool is_aligned);
/** The same with the gate's quick_gelu(), and an offset () of the second half,
 *  which it saves as well. */
me_tensor *me_fused_weighted_quick_geglu(me_engine *e, me_tensor *x,
                                         me_tensor *weights, me_tensor *offset);
/** x · sigmoid(gate), in float32 between; @p gate may lie in a wider tensor, and
 *  has the elements of @p x in shape of its own; saves both. */
me_tensor *me_fused_output_gate(me_engine *e, me_tensor *x, me_tensor *gate);
/** x / rms(x) along the last dimension, in float32 between; @p x may lie in a wider
 *  tensor; saves it and 1/rms, (…, 1) float32. */
me_tensor *me_fused_l2_norm(me_engine *e, me_tensor *x);
/** @} */

#endif /* MEMEST_OPS_ELEMENTWISE_H */
