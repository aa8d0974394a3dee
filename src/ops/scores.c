/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/scores.h"

#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"

/** An element-wise function that saves its input or its result. */
static me_tensor *function_of(me_engine *e, const me_op *op, me_tensor *x,
                              bool saves_result)
{
    me_node *node = me_record1(e, op, x);
    me_tensor *y = me_kernel_like(e, op, ME_TENSORS(x));
    me_save(e, node, 0, saves_result ? y : x);
    return me_output(e, node, y);
}

static const me_op sigmoid_gradient = {"sigmoid_backward",
                                       .cost = ME_POINTWISE};
static const me_op sigmoid_op =
    ME_OP("sigmoid", NULL, ME_POINTWISE, "SigmoidBackward0",
          .backward = me_gradient_backward, .gradient = &sigmoid_gradient);

me_tensor *me_sigmoid(me_engine *e, me_tensor *x)
{
    return function_of(e, &sigmoid_op, x, true);
}

static const me_op softplus_gradient = {"softplus_backward",
                                        .cost = ME_POINTWISE};
static const me_op softplus_op =
    ME_OP("softplus", NULL, ME_POINTWISE, "SoftplusBackward0",
          .backward = me_gradient_backward, .gradient = &softplus_gradient);

me_tensor *me_softplus(me_engine *e, me_tensor *x)
{
    return function_of(e, &softplus_op, x, false);
}

/** grad / (2 · result). */
static void sqrt_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    const me_dtype dtype = (me_dtype)gy[0]->dtype;
    me_tensor *doubled = me_pointwise(e, "mul", node->saved[0], dtype);
    gx[0] = me_pointwise(e, "div", gy[0], dtype);
    me_drop(e, doubled);
}

static const me_op sqrt_op = ME_OP("sqrt", NULL, ME_POINTWISE, "SqrtBackward0",
                                   .backward = sqrt_backward);

me_tensor *me_sqrt(me_engine *e, me_tensor *x)
{
    return function_of(e, &sqrt_op, x, true);
}

/** The incoming gradient shown along the dimension that was summed: a view. */
static void sum_last_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    for (int32_t i = 0; i + 1 < node->data.shape.ndim; i++) {
        strides[i] = gy[0]->strides[i];
    }
    gx[0] = me_alias(e, gy[0], node->data.shape, strides);
}

static const me_op sum_last_op = ME_NODE("SumBackward1", sum_last_backward);

static me_tensor *sum_to(me_engine *e, me_tensor *x, me_shape shape)
{
    me_node *node = me_record1(e, &sum_last_op, x);
    me_tensor *sum = me_empty(e, "sum", (me_dtype)x->dtype, shape);
    me_reduce_to(e, x, me_shape_numel(&shape), 4);
    return me_output(e, node, sum);
}

me_tensor *me_sum_last(me_engine *e, me_tensor *x)
{
    return sum_to(e, x, me_shape_with_last(&x->shape, 1));
}

me_tensor *me_sum_away(me_engine *e, me_tensor *x)
{
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.ndim--;
    }
    return sum_to(e, x, shape);
}

enum {
    DIVIDE_SAVED_OTHER,
    DIVIDE_SAVED_SELF
};

/** -grad · ((a / b) / b), which the tape sums to the divisor, then grad / b. */
static void divide_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const me_dtype dtype = (me_dtype)gy[0]->dtype;
    if (me_needs(node, 1)) {
        me_tensor *negated = me_pointwise(e, "neg", gy[0], dtype);
        me_tensor *quotient = me_pointwise(e, "div", gy[0], dtype);
        me_tensor *twice = me_pointwise(e, "div", gy[0], dtype);
        gx[1] = me_pointwise(e, "mul", gy[0], dtype);
        me_drop(e, twice);
        me_drop(e, quotient);
        me_drop(e, negated);
    }
    gx[0] = me_pointwise(e, "div", gy[0], dtype);
}

static const me_op divide_op = ME_OP("div", NULL, ME_POINTWISE, "DivBackward0",
                                     .backward = divide_backward);

me_tensor *me_divide(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record2(e, &divide_op, a, b);
    me_tensor *y = me_kernel_like(e, &divide_op, ME_TENSORS(a, b));
    me_save(e, node, DIVIDE_SAVED_OTHER, b);
    me_save(e, node, DIVIDE_SAVED_SELF, a);
    return me_output(e, node, y);
}

static const me_op div_number_gradient = {"div", .cost = ME_POINTWISE};
static const me_op div_number_op =
    ME_OP("div", NULL, ME_POINTWISE, "DivBackward0",
          .backward = me_gradient_backward, .gradient = &div_number_gradient);

me_tensor *me_div_number(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &div_number_op, a);
    return me_output(e, node, me_kernel_like(e, &div_number_op, ME_TENSORS(a)));
}

static const me_op gather_gradient = {"GatherBackward0",
                                      .cost = ME_COST(INDEX, 0, 2, 1)};
static const me_op gather_op =
    ME_OP("gather", NULL, ME_COST(INDEX, 0, 0, 2), "GatherBackward0",
          .backward = me_scatter_backward, .gradient = &gather_gradient);

me_tensor *me_gather(me_engine *e, me_tensor *x, me_tensor *index)
{
    me_node *node = me_record1(e, &gather_op, x);
    me_tensor *y = me_kernel(e, &gather_op, ME_TENSORS(index),
                             (me_dtype)x->dtype, index->shape);
    me_save(e, node, 0, index);
    return me_output(e, node, y);
}

static const me_op fill_gradient = {"masked_fill", .cost = ME_POINTWISE};
static const me_op fill_op =
    ME_OP("masked_fill", NULL, ME_POINTWISE, "MaskedFillBackward0",
          .backward = me_gradient_backward, .gradient = &fill_gradient);

me_tensor *me_masked_fill_outside(me_engine *e, me_tensor *x,
                                  const me_tensor *mask)
{
    me_tensor *flags = me_pointwise(e, "bool", mask, ME_DTYPE_BOOL);
    me_tensor *others = me_pointwise(e, "bitwise_not", flags, ME_DTYPE_BOOL);
    me_drop(e, flags);
    me_node *node = me_record1(e, &fill_op, x);
    me_tensor *y = me_kernel_like(e, &fill_op, ME_TENSORS(x));
    me_save(e, node, 0, others);
    me_drop(e, others);
    return me_output(e, node, y);
}

enum {
    LOGSUMEXP_SAVED_SELF,
    LOGSUMEXP_SAVED_RESULT
};

/** grad · exp(x - result). */
static void logsumexp_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[LOGSUMEXP_SAVED_SELF];
    const me_dtype dtype = (me_dtype)gy[0]->dtype;
    me_tensor *difference = me_pointwise(e, "sub", x, dtype);
    me_tensor *exponential = me_pointwise(e, "exp", difference, dtype);
    gx[0] = me_pointwise(e, "mul", exponential, dtype);
    me_drop(e, exponential);
    me_drop(e, difference);
}

static const me_op logsumexp_op =
    ME_NODE("LogsumexpBackward0", logsumexp_backward);

/** logsumexp_out_impl() of ReduceOps.cpp: the largest of each row, looked at for
 *  infinity, then the exponential of what is left, in place, and its sum. */
me_tensor *me_logsumexp(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &logsumexp_op, x);
    me_shape rows = x->shape;
    if (me_engine_is_ok(e)) {
        rows.ndim--;
    }
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *largest = me_empty(e, "amax", dtype, rows);
    me_reduce_to(e, x, me_shape_numel(&rows), 4);
    me_tensor *magnitude = me_pointwise(e, "abs", largest, dtype);
    me_tensor *flags = me_pointwise(e, "eq", magnitude, ME_DTYPE_BOOL);
    me_drop(e, flags);
    me_drop(e, magnitude);
    me_tensor *rest = me_pointwise(e, "sub", x, dtype);
    me_tensor *result = me_empty(e, "logsumexp", dtype, rows);
    me_reduce_to(e, rest, me_shape_numel(&rows), 4);
    me_drop(e, rest);
    me_drop(e, largest);
    me_save(e, node, LOGSUMEXP_SAVED_SELF, x);
    me_save(e, node, LOGSUMEXP_SAVED_RESULT, result);
    return me_output(e, node, result);
}
