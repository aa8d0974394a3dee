/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"

#include "ops/autocast_casts.h"
#include "ops/compiled.h"
#include "ops/view.h"
#include "tensor/autograd.h"

/** The operand that already has the shape of the result. */
static const me_tensor *wider(const me_tensor *a, const me_tensor *b)
{
    if (a->shape.ndim != b->shape.ndim) {
        return a->shape.ndim > b->shape.ndim ? a : b;
    }
    return me_numel(a) >= me_numel(b) ? a : b;
}

/** Kernels of backwards. */
static const me_op pow_kernel = {"pow", "pow.Tensor_Scalar",
                                 .cost = ME_POINTWISE};
static const me_op mul_kernel = {"mul", "mul.Tensor", .cost = ME_POINTWISE};
/** `number * a` in C++, where the number stays one. */
static const me_op scale_kernel = {"mul", "mul.Scalar", .cost = ME_POINTWISE};

static me_tensor *unary(me_engine *e, const me_op *op, const me_tensor *x)
{
    return me_kernel_like(e, op, ME_TENSORS(x));
}

/** Type of a result: numbers without dimensions widen no tensor that has some,
 *  but for the step from integers to floating point (c10's
 *  combine_categories()). */
static me_dtype promoted(const me_tensor *a, const me_tensor *b)
{
    const me_dtype type = me_dtype_promote(a->dtype, b->dtype);
    const bool is_mixed = (a->shape.ndim == 0) != (b->shape.ndim == 0);
    const me_dtype own = (me_dtype)(a->shape.ndim == 0 ? b : a)->dtype;
    return is_mixed && me_dtype_is_floating(own) ? own : type;
}

/** The result is dense, of the shape that two operands broadcast to. Parts of
 *  DTensors that are cut otherwise than their gradients do not: then of that of
 *  the larger one. */
static me_tensor *binary(me_engine *e, const me_op *op, const me_tensor *a,
                         const me_tensor *b)
{
    me_shape shape = ME_SCALAR;
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (!me_shape_broadcast(&a->shape, &b->shape, &shape)) {
        const me_tensor *larger = wider(a, b);
        shape = larger->shape;
        me_strides_like(&shape, larger->strides, strides);
    } else {
        me_strides_broadcast(&shape, &(me_extents){&a->shape, a->strides},
                             &(me_extents){&b->shape, b->strides}, strides);
    }
    me_tensor *y =
        me_empty_strided(e, op->event, promoted(a, b), shape, strides);
    me_op_run(e, op, ME_TENSORS(a, b), ME_TENSORS(y));
    return y;
}

/** Do two operands of `a + b` and the like go together? A failure of the engine
 *  where they don't. */
static bool are_broadcast(me_engine *e, const char *sign, const me_tensor *a,
                          const me_tensor *b)
{
    me_shape shape = ME_SCALAR;
    char texts[2][ME_SHAPE_TEXT] = {"", ""};
    if (!me_engine_is_ok(e) ||
        me_shape_broadcast(&a->shape, &b->shape, &shape)) {
        return true;
    }
    me_shape_text(&a->shape, texts[0]);
    me_shape_text(&b->shape, texts[1]);
    me_engine_fail(e, ME_ERR_CONFIG,
                   "%s %s %s: these shapes do not broadcast; from the last one "
                   "on, extents must be equal or 1",
                   texts[0], sign, texts[1]);
    return false;
}

me_tensor *me_pointwise(me_engine *e, const char *event, const me_tensor *a,
                        me_dtype dtype)
{
    const me_op op = {event, .cost = ME_POINTWISE};
    return me_kernel_as(e, &op, ME_TENSORS(a), dtype);
}

static const me_op clone_kernel = {"clone", "clone.default",
                                   .cost = ME_POINTWISE};

me_tensor *me_clone_detached(me_engine *e, const me_tensor *a)
{
    return unary(e, &clone_kernel, a);
}

static void add_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    (void)e;
    gx[0] = gy[0];
    gx[1] = node->n_inputs > 1 ? gy[0] : NULL;
}

static const me_op add_op = ME_OP("add", "add.Tensor", ME_POINTWISE,
                                  "AddBackward0", .backward = add_backward);

me_tensor *me_add(me_engine *e, me_tensor *a, me_tensor *b)
{
    if (!are_broadcast(e, "+", a, b)) {
        return me_none(e);
    }
    me_node *node = me_record2(e, &add_op, a, b);
    return me_output(e, node, binary(e, &add_op, a, b));
}

me_tensor *me_add_number(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &add_op, a);
    return me_output(e, node, unary(e, &add_op, a));
}

static const me_op neg_kernel = {"neg", "neg.default", .cost = ME_POINTWISE};

static void sub_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    if (me_needs(node, 1)) {
        gx[1] = unary(e, &neg_kernel, gy[0]);
    }
    gx[0] = gy[0];
}

static const me_op sub_op = ME_OP("sub", "sub.Tensor", ME_POINTWISE,
                                  "SubBackward0", .backward = sub_backward);

me_tensor *me_sub(me_engine *e, me_tensor *a, me_tensor *b)
{
    if (!are_broadcast(e, "-", a, b)) {
        return me_none(e);
    }
    me_node *node = me_record2(e, &sub_op, a, b);
    return me_output(e, node, binary(e, &sub_op, a, b));
}

/** grad · (2 · x¹), as FunctionsManual.cpp's pow_backward writes it. */
static void square_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    me_tensor *power = unary(e, node->op, node->saved[0]);
    me_tensor *doubled = unary(e, &scale_kernel, power);
    gx[0] = binary(e, &mul_kernel, gy[0], doubled);
    me_drop(e, doubled);
    me_drop(e, power);
}

static const me_op square_op =
    ME_OP("pow", "pow.Tensor_Scalar", ME_POINTWISE, "PowBackward0",
          .backward = square_backward);

me_tensor *me_square(me_engine *e, me_tensor *a)
{
    const me_frame frame = me_enter(e);
    a = me_autocast_float(e, a);
    me_node *node = me_record1(e, &square_op, a);
    me_save(e, node, 0, a);
    return me_leave(e, frame, me_output(e, node, unary(e, &square_op, a)));
}

enum {
    MUL_SAVED_OTHER,
    MUL_SAVED_SELF
};

static void mul_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    if (me_needs(node, 1)) {
        gx[1] = binary(e, node->op, gy[0], node->saved[MUL_SAVED_SELF]);
    }
    if (me_needs(node, 0)) {
        gx[0] = binary(e, node->op, gy[0], node->saved[MUL_SAVED_OTHER]);
    }
}

static const me_op mul_op = ME_OP("mul", "mul.Tensor", ME_POINTWISE,
                                  "MulBackward0", .backward = mul_backward);

me_tensor *me_mul(me_engine *e, me_tensor *a, me_tensor *b)
{
    if (!are_broadcast(e, "*", a, b)) {
        return me_none(e);
    }
    me_node *node = me_record2(e, &mul_op, a, b);
    me_save(e, node, MUL_SAVED_OTHER, a->requires_grad ? b : NULL);
    me_save(e, node, MUL_SAVED_SELF, b->requires_grad ? a : NULL);
    return me_output(e, node, binary(e, &mul_op, a, b));
}

static const me_op mul_gradient = {"MulBackward0", .cost = ME_POINTWISE};
static const me_op mul_number_op =
    ME_OP("mul", "mul.Tensor", ME_POINTWISE, "MulBackward0",
          .backward = me_gradient_backward, .gradient = &mul_gradient);
static const me_op div_gradient = {"DivBackward0", .cost = ME_POINTWISE};
static const me_op div_number_op =
    ME_OP("div", "div.Tensor", ME_POINTWISE, "DivBackward0",
          .backward = me_gradient_backward, .gradient = &div_gradient);
static const me_op neg_gradient = {"NegBackward0", .cost = ME_POINTWISE};
static const me_op neg_op =
    ME_OP("neg", "neg.default", ME_POINTWISE, "NegBackward0",
          .backward = me_gradient_backward, .gradient = &neg_gradient);

/** What was saved of @p a is not what it was (bump_version()). */
static void changed(const me_tensor *a)
{
    if (a->storage != NULL) {
        a->storage->version++;
    }
}

/** The kernel writes to @p a; a divisor may be saved before. */
static me_tensor *in_place(me_engine *e, const me_op *op, me_tensor *a,
                           const me_tensor *saved)
{
    me_node *node = me_record1(e, op, a);
    me_save(e, node, 0, saved);
    changed(a);
    me_op_launch(e, op, ME_TENSORS(a), a);
    return me_output(e, node, a);
}

me_tensor *me_add_number_in_place(me_engine *e, me_tensor *a)
{
    return in_place(e, &add_op, a, NULL);
}

/** What was added through a view: the base's gradient is copied, and the slice of
 *  it, which is that of what was added, cloned. */
static void add_slices_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    (void)node;
    gx[0] = me_pointwise(e, "CopySlices.base", gy[0], (me_dtype)gy[0]->dtype);
    gx[1] = me_pointwise(e, "CopySlices.slice", gy[0], (me_dtype)gy[0]->dtype);
}

static const me_op add_slices_op = ME_NODE("CopySlices", add_slices_backward);

me_tensor *me_add_in_place(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record2(e, a->is_view ? &add_slices_op : &add_op, a, b);
    changed(a);
    me_op_launch(e, &add_op, ME_TENSORS(a, b), a);
    me_output(e, node, a);
    return a->is_view ? me_regenerate_view(e, a) : a;
}

me_tensor *me_mul_number(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &mul_number_op, a);
    return me_output(e, node, unary(e, &mul_number_op, a));
}

/** -0.5 · grad · result³. */
static void rsqrt_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_tensor *scaled = unary(e, &scale_kernel, gy[0]);
    me_tensor *cube = unary(e, &pow_kernel, node->saved[0]);
    gx[0] = unary(e, &mul_kernel, scaled);
    me_drop(e, cube);
    me_drop(e, scaled);
}

static const me_op rsqrt_op = ME_OP(
    "rsqrt", NULL, ME_POINTWISE, "RsqrtBackward0", .backward = rsqrt_backward);

me_tensor *me_rsqrt(me_engine *e, me_tensor *a)
{
    const me_frame frame = me_enter(e);
    a = me_autocast_float(e, a);
    me_node *node = me_record1(e, &rsqrt_op, a);
    const bool is_floating = me_dtype_is_floating((me_dtype)a->dtype);
    me_tensor *y =
        me_kernel_as(e, &rsqrt_op, ME_TENSORS(a),
                     is_floating ? (me_dtype)a->dtype : ME_DTYPE_FLOAT32);
    me_save(e, node, 0, y);
    return me_leave(e, frame, me_output(e, node, y));
}

me_tensor *me_neg(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &neg_op, a);
    return me_output(e, node, unary(e, &neg_op, a));
}

me_tensor *me_div(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record1(e, &div_number_op, a);
    me_save(e, node, 0, b);
    return me_output(e, node, unary(e, &div_number_op, a));
}

me_tensor *me_div_number_in_place(me_engine *e, me_tensor *a)
{
    return in_place(e, &div_number_op, a, NULL);
}

me_tensor *me_div_in_place(me_engine *e, me_tensor *a, me_tensor *b)
{
    return in_place(e, &div_number_op, a, b);
}

/** One gradient from what was saved. */
static void activation_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *saved = node->saved[0];
    const bool is_wider = wider(gy[0], saved) == gy[0];
    gx[0] = me_kernel_like(
        e, node->op->gradient,
        ME_TENSORS(is_wider ? gy[0] : saved, is_wider ? saved : gy[0]));
}

static const me_op silu_gradient = {"SiluBackward0", "silu_backward.default",
                                    .cost = ME_COST(SILU, 1, 2, 1)};
static const me_op silu_op =
    ME_OP("silu", "silu.default", ME_COST(SILU, 1, 1, 1), "SiluBackward0",
          .backward = activation_backward, .gradient = &silu_gradient);
static const me_op gelu_gradient = {"GeluBackward0", "gelu_backward.default",
                                    .cost = ME_COST(GELU, 1, 2, 1)};
static const me_op gelu_op =
    ME_OP("gelu", "gelu.default", ME_COST(GELU, 1, 1, 1), "GeluBackward0",
          .backward = activation_backward, .gradient = &gelu_gradient);

/** Saves its input. */
static me_tensor *activation(me_engine *e, const me_op *op, me_tensor *x)
{
    me_node *node = me_record1(e, op, x);
    me_save(e, node, 0, x);
    return me_output(e, node, unary(e, op, x));
}

me_tensor *me_silu(me_engine *e, me_tensor *x)
{
    return activation(e, &silu_op, x);
}

me_tensor *me_gelu(me_engine *e, me_tensor *x)
{
    return activation(e, &gelu_op, x);
}

/** where(x >= min and x <= max, g, 0), the zero on the card and made first. */
static const me_op clamp_gradient = {"ClampBackward1", "where.self",
                                     .cost = ME_POINTWISE};
static const me_op both_ends = {"logical_and", "logical_and_.default",
                                .cost = ME_POINTWISE};

static void clamp_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    const me_tensor *x = node->saved[0];
    me_tensor *zero =
        me_empty(e, "scalar_tensor", (me_dtype)gy[0]->dtype, ME_SCALAR);
    me_tensor *inside = me_pointwise(e, "compare", x, ME_DTYPE_BOOL);
    me_tensor *below = NULL;
    if (node->data.flag) {
        below = me_pointwise(e, "compare", x, ME_DTYPE_BOOL);
        me_op_run(e, &both_ends, ME_TENSORS(inside, below), ME_TENSORS(inside));
    }
    gx[0] = me_kernel_like(e, &clamp_gradient, ME_TENSORS(gy[0]));
    me_drop(e, below);
    me_drop(e, inside);
    me_drop(e, zero);
}

static const me_op clamp_op =
    ME_OP("clamp", "clamp.default", ME_POINTWISE, "ClampBackward1",
          .backward = clamp_backward);

me_tensor *me_clamp(me_engine *e, me_tensor *x, bool has_min)
{
    me_node *node = me_record1(e, &clamp_op, x);
    me_save(e, node, 0, x);
    if (node != NULL) {
        node->data.flag = has_min;
    }
    return me_output(e, node, unary(e, &clamp_op, x));
}

/** Compiled code lets go of what was saved when its kernel has run, and so before
 *  the gradients go. */
static void compiled_activation_backward(me_engine *e, me_node *node,
                                         me_compiled_kernel kernel,
                                         me_tensor *const *gy, me_tensor **gx)
{
    activation_backward(e, node, gy, gx);
    me_compiled_run(e, kernel, NULL);
    me_clear(e, &node->saved[0]);
}

static const me_op relu_gradient = {
    "ReluBackward0", "threshold_backward.default", .cost = ME_POINTWISE};
static const me_op relu_op =
    ME_OP("relu", "relu.default", ME_POINTWISE, "ReluBackward0",
          .backward = activation_backward, .gradient = &relu_gradient);

me_tensor *me_relu(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &relu_op, x);
    me_tensor *y = unary(e, &relu_op, x);
    me_save(e, node, 0, y);
    return me_output(e, node, y);
}

static const me_op relu_in_place_op =
    ME_OP(NULL, "relu_.default", ME_POINTWISE, "ReluBackward0",
          .backward = activation_backward, .gradient = &relu_gradient);

me_tensor *me_relu_in_place(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &relu_in_place_op, x);
    me_op_run(e, &relu_in_place_op, ME_TENSORS(x), ME_TENSORS(x));
    changed(x);
    me_save(e, node, 0, x);
    return me_output(e, node, x);
}

static const me_op compiled_gradient = {"CompiledFunctionBackward",
                                        .cost = ME_COST(COMPILED, 1, 2, 1)};

static void squared_relu_backward(me_engine *e, me_node *node,
                                  me_tensor *const *gy, me_tensor **gx)
{
    compiled_activation_backward(e, node, ME_COMPILED_SQUARED_RELU_BACKWARD, gy,
                                 gx);
}

static const me_op squared_relu_op =
    ME_OP("squared_relu", NULL, ME_COST(COMPILED, 1, 1, 1),
          "CompiledFunctionBackward", .backward = squared_relu_backward,
          .gradient = &compiled_gradient);

me_tensor *me_squared_relu(me_engine *e, me_tensor *x)
{
    me_tensor *y = activation(e, &squared_relu_op, x);
    me_compiled_run(e, ME_COMPILED_SQUARED_RELU, NULL);
    return y;
}

static void quick_gelu_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    compiled_activation_backward(e, node, ME_COMPILED_QUICK_GELU_BACKWARD, gy,
                                 gx);
}

static const me_op quick_gelu_op = ME_OP(
    "quick_gelu", NULL, ME_COST(COMPILED, 1, 1, 1), "CompiledFunctionBackward",
    .backward = quick_gelu_backward, .gradient = &compiled_gradient);

me_tensor *me_quick_gelu(me_engine *e, me_tensor *x)
{
    me_tensor *y = activation(e, &quick_gelu_op, x);
    me_compiled_run(e, ME_COMPILED_QUICK_GELU, NULL);
    return y;
}
