/* SPDX-License-Identifier: BSD-3-Clause */
/* core/fusions/fused_bias_gelu.py, fused_bias_swiglu.py; core/activations.py. A
 * Python expression lets go of its operands once their result exists, the left
 * one first. */
#include "ops/op_by_op.h"

#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/scores.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** Of two floating types as the operands of one operation. */
static me_dtype promoted(const me_tensor *a, const me_tensor *b)
{
    return a->dtype == b->dtype ? (me_dtype)a->dtype : ME_DTYPE_FLOAT32;
}

/** An element-wise result that is half as wide as @p x: (…, 2f) to (…, f). */
static me_tensor *half(me_engine *e, const char *op, const me_tensor *x,
                       me_dtype dtype)
{
    me_tensor *y = me_empty(e, op, dtype,
                            me_shape_with_last(&x->shape, me_dim(x, -1) / 2));
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(y), me_bytes(x));
    return y;
}

/** An element-wise result like @p a, which goes. */
static me_tensor *then(me_engine *e, const char *op, me_tensor *a)
{
    me_tensor *y = me_pointwise(e, op, a, (me_dtype)a->dtype);
    me_drop(e, a);
    return y;
}

/** One of two operands that both go, the left one first. */
static me_tensor *join(me_engine *e, const char *op, me_tensor *left,
                       me_tensor *right, me_dtype dtype)
{
    me_tensor *y = me_pointwise(e, op, left, dtype);
    me_drop(e, left);
    me_drop(e, right);
    return y;
}

/** `F.silu(y_1) * y_2`. */
static me_tensor *swiglu(me_engine *e, const me_tensor *y)
{
    return then(e, "mul", half(e, "silu", y, (me_dtype)y->dtype));
}

static const me_op cat_kernel = {"cat", .cost = ME_COST(ELEMENTWISE, 1, 0, 2)};

/** swiglu_back(): the gradient of y (…, 2f) from that of the result. */
static me_tensor *swiglu_back(me_engine *e, const me_tensor *g,
                              const me_tensor *y)
{
    const me_dtype own = (me_dtype)y->dtype;
    const me_dtype dtype = promoted(g, y);
    me_tensor *sigmoid = half(e, "sigmoid", y, own);
    me_tensor *left = me_pointwise(e, "mul", g, dtype); // g · sigmoid(y_1)
    me_drop(e, sigmoid);
    me_tensor *right = half(e, "sigmoid", y, own);
    right = then(e, "rsub", right); // 1 - sigmoid(y_1)
    right = then(e, "mul", right);  // y_1 · (1 - sigmoid(y_1))
    right = then(e, "add", right);
    left = join(e, "mul", left, right, dtype);
    left = then(e, "mul", left); // · y_2
    me_tensor *silu = half(e, "silu", y, own);
    me_tensor *second = me_pointwise(e, "mul", g, dtype);
    me_drop(e, silu);
    me_tensor *gradient =
        me_kernel(e, &cat_kernel, ME_NO_TENSORS, dtype, y->shape);
    me_drop(e, left);
    me_drop(e, second);
    return gradient;
}

enum {
    SAVED_X,
    SAVED_OTHER
};

/** `torch.tanh(0.79… * x * (1 + 0.044… * x * x))`. */
static me_tensor *tanh_of(me_engine *e, const me_tensor *x)
{
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *left = me_pointwise(e, "mul", x, dtype);
    me_tensor *right = me_pointwise(e, "mul", x, dtype);
    right = then(e, "mul", right);
    right = then(e, "add", right);
    return then(e, "tanh", join(e, "mul", left, right, dtype));
}

static void bias_gelu_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    me_tensor *saved = node->saved[SAVED_X];
    const me_dtype dtype = (me_dtype)saved->dtype;
    me_tensor *x = me_pointwise(e, "add", saved, dtype);
    me_tensor *tanh = tanh_of(e, x);
    me_tensor *left = me_pointwise(e, "mul", x, dtype); // 0.5 · x
    me_tensor *square = then(e, "rsub", me_pointwise(e, "mul", tanh, dtype));
    me_tensor *inner = me_pointwise(e, "mul", x, dtype);
    inner = then(e, "add", then(e, "mul", inner)); // 0.79… + 0.10… · x · x
    left = join(e, "mul", left, join(e, "mul", square, inner, dtype), dtype);
    me_tensor *right = me_pointwise(e, "add", tanh, dtype);
    right = then(e, "mul", right); // 0.5 · (1 + tanh)
    me_tensor *ff = join(e, "add", left, right, dtype);
    gx[0] = me_pointwise(e, "mul", gy[0], dtype);
    me_drop(e, x); // the function's locals, in the order of their names
    me_drop(e, tanh);
    me_drop(e, ff);
    gx[1] = me_needs(node, 1) ? gx[0] : NULL;
}

static const me_op bias_gelu_op =
    ME_NODE("GeLUFunctionBackward", bias_gelu_backward);

me_tensor *me_op_by_op_bias_gelu(me_engine *e, me_tensor *x, me_tensor *bias)
{
    me_node *node = me_record2(e, &bias_gelu_op, x, bias);
    me_save(e, node, SAVED_X, x);
    me_save(e, node, SAVED_OTHER, bias);
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *sum = me_pointwise(e, "add", x, dtype);
    me_tensor *left = me_pointwise(e, "mul", sum, dtype); // x · 0.5
    me_tensor *right = then(e, "add", tanh_of(e, sum));
    me_tensor *y = join(e, "mul", left, right, dtype);
    me_leave(e, frame, y);
    me_grad_enable(e, grad);
    return me_output(e, node, y);
}

static void swiglu_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    me_tensor *x = node->saved[SAVED_X];
    me_tensor *sum = NULL;
    if (node->n_inputs > 1) {
        sum = me_pointwise(e, "add", x, (me_dtype)x->dtype);
    }
    gx[0] = swiglu_back(e, gy[0], x);
    me_drop(e, sum);
    if (node->n_inputs > 1) {
        gx[1] = me_needs(node, 1) ? gx[0] : NULL;
    }
}

static const me_op swiglu_op =
    ME_NODE("SwiGLUFunctionBackward", swiglu_backward);
static const me_op bias_swiglu_op =
    ME_NODE("BiasSwiGLUFunctionBackward", swiglu_backward);

me_tensor *me_op_by_op_swiglu(me_engine *e, me_tensor *x, me_tensor *bias)
{
    me_node *node = bias == NULL ? me_record1(e, &swiglu_op, x)
                                 : me_record2(e, &bias_swiglu_op, x, bias);
    me_save(e, node, SAVED_X, x);
    me_save(e, node, SAVED_OTHER, bias);
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    if (bias != NULL) {
        x = me_pointwise(e, "add", x, (me_dtype)x->dtype);
    }
    me_tensor *y = swiglu(e, x);
    me_leave(e, frame, y);
    me_grad_enable(e, grad);
    return me_output(e, node, y);
}

/** `torch.sum(x, dim=-1, keepdim=True)`, of which @p like has the shape. */
static me_tensor *sum_rows(me_engine *e, const me_tensor *x,
                           const me_tensor *like)
{
    me_tensor *y = me_empty_like_as(e, "sum", like, (me_dtype)x->dtype);
    me_reduce_to(e, x, me_numel(y), 4);
    return y;
}

/** weighted_swiglu_back(). */
static void weighted_swiglu_backward(me_engine *e, me_node *node,
                                     me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[SAVED_X];
    const me_tensor *weights = node->saved[SAVED_OTHER];
    const me_dtype wide = promoted(x, weights);
    const bool is_wider = wide != (me_dtype)x->dtype;
    me_tensor *scaled = me_pointwise(e, "mul", gy[0], wide); // g · weights
    me_tensor *input = swiglu_back(e, scaled, x);
    me_drop(e, scaled);
    me_tensor *own = swiglu(e, x);
    me_tensor *g = is_wider ? me_pointwise(e, "to", gy[0], wide) : NULL;
    me_tensor *product = join(e, "mul", own, g, wide);
    gx[1] = sum_rows(e, product, weights);
    me_drop(e, product);
    gx[0] = input;
    if (is_wider) {
        gx[0] = me_pointwise(e, "to", input, (me_dtype)x->dtype);
        me_drop(e, input);
    }
}

static const me_op weighted_swiglu_op = {.node =
                                             "WeightedSwiGLUFunctionBackward",
                                         .backward = weighted_swiglu_backward};

me_tensor *me_op_by_op_weighted_swiglu(me_engine *e, me_tensor *x,
                                       me_tensor *weights)
{
    me_node *node = me_record2(e, &weighted_swiglu_op, x, weights);
    me_save(e, node, SAVED_X, x);
    me_save(e, node, SAVED_OTHER, weights);
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    const me_dtype wide = promoted(x, weights);
    me_tensor *y = join(e, "mul", swiglu(e, x), NULL, wide);
    if (wide != (me_dtype)x->dtype) {
        me_tensor *narrow = me_pointwise(e, "to", y, (me_dtype)x->dtype);
        me_drop(e, y); // `res`, when the function ends
        y = narrow;
    }
    me_leave(e, frame, y);
    me_grad_enable(e, grad);
    return me_output(e, node, y);
}

me_tensor *me_op_by_op_squared_relu(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    return me_leave(e, frame, me_square(e, me_relu(e, x)));
}

me_tensor *me_op_by_op_quick_gelu(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_tensor *scaled = me_mul_number(e, x);
    me_tensor *gate = me_sigmoid(e, scaled);
    me_drop(e, scaled);
    return me_leave(e, frame, me_mul(e, x, gate));
}
