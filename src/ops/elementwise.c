/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"

#include "base/size.h"
#include "ops/autocast_casts.h"
#include "ops/compiled.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

#include <string.h>

/** The operand that already has the shape of the result. */
static const me_tensor *wider(const me_tensor *a, const me_tensor *b)
{
    if (a->shape.ndim != b->shape.ndim) {
        return a->shape.ndim > b->shape.ndim ? a : b;
    }
    return me_numel(a) >= me_numel(b) ? a : b;
}

/** The dispatcher's name of what PyTorch jobs run; NULL: none, or nobody asks. */
static const char *dispatch_name(const me_engine *e, const char *op)
{
    static const struct {
        const char *op;
        const char *name;
    } names[] = {
        {"add", "add.Tensor"},
        {"sub", "sub.Tensor"},
        {"mul", "mul.Tensor"},
        {"div", "div.Tensor"},
        {"neg", "neg.default"},
        {"pow", "pow.Tensor_Scalar"},
        {"to", "_to_copy.default"},
        {"clone", "clone.default"},
        {"relu", "relu.default"},
        {"gelu", "gelu.default"},
        {"silu", "silu.default"},
        {"ReluBackward0", "threshold_backward.default"},
        {"GeluBackward0", "gelu_backward.default"},
        {"SiluBackward0", "silu_backward.default"},
        {"native_dropout_backward", "native_dropout_backward.default"},
    };

    size_t i = me_is_listened_to(e) ? sizeof names / sizeof *names : 0;
    while (i > 0 && strcmp(names[i - 1].op, op) != 0) {
        i--;
    }
    return i == 0 ? NULL : names[i - 1].name;
}

static void tell(me_engine *e, const char *op, me_tensors arguments,
                 me_tensors results)
{
    const char *name = dispatch_name(e, op);
    if (name != NULL) {
        me_tell_op(e, name, arguments, results);
    }
}

/** An element-wise kernel: the result, and the work that it takes. @p name is the
 *  dispatcher's; NULL: it has none. */
static me_tensor *kernel_as(me_engine *e, const char *op, const char *name,
                            const me_tensor *like, me_dtype dtype,
                            uint64_t read_bytes)
{
    me_tensor *y = me_empty_like_as(e, op, like, dtype);
    const me_kernel_class class =
        like->dtype == (uint8_t)dtype ? ME_KERNEL_ELEMENTWISE : ME_KERNEL_CAST;
    me_launch_kernel(e, class, me_numel(y),
                     me_size_add(read_bytes, me_bytes(y)));
    if (name != NULL) {
        me_tell_op(e, name, ME_TENSORS(like), ME_TENSORS(y));
    }
    return y;
}

static me_tensor *kernel(me_engine *e, const char *op, const me_tensor *like,
                         me_dtype dtype, uint64_t read_bytes)
{
    return kernel_as(e, op, dispatch_name(e, op), like, dtype, read_bytes);
}

/** `number * a` in C++, where the number stays one. */
static me_tensor *scaled_by_number(me_engine *e, const me_tensor *a)
{
    return kernel_as(e, "mul", "mul.Scalar", a, (me_dtype)a->dtype,
                     me_bytes(a));
}

static me_tensor *unary(me_engine *e, const char *op, const me_tensor *x)
{
    return kernel(e, op, x, (me_dtype)x->dtype, me_bytes(x));
}

/** Type of a result: numbers without dimensions widen no tensor that has some,
 *  but for the step from integers to floating point (c10's combine_categories()). */
static me_dtype promoted(const me_tensor *a, const me_tensor *b)
{
    const me_dtype type = me_dtype_promote(a->dtype, b->dtype);
    const bool is_mixed = (a->shape.ndim == 0) != (b->shape.ndim == 0);
    const me_dtype own = (me_dtype)(a->shape.ndim == 0 ? b : a)->dtype;
    return is_mixed && me_dtype_is_floating(own) ? own : type;
}

/** Dense, of the shape that two operands broadcast to. Parts of DTensors that
 *  are cut otherwise than their gradients do not: that of the larger one. */
static me_tensor *empty_of_two(me_engine *e, const char *op, const me_tensor *a,
                               const me_tensor *b)
{
    me_shape shape = ME_SCALAR;
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (!me_shape_broadcast(&a->shape, &b->shape, &shape)) {
        return me_empty_like_as(e, op, wider(a, b), promoted(a, b));
    }
    me_strides_broadcast(&shape, &(me_extents){&a->shape, a->strides},
                         &(me_extents){&b->shape, b->strides}, strides);
    return me_empty_strided(e, op, promoted(a, b), shape, strides);
}

static me_tensor *binary(me_engine *e, const char *op, const me_tensor *a,
                         const me_tensor *b)
{
    me_tensor *y = empty_of_two(e, op, a, b);
    const bool is_cast = wider(a, b)->dtype != (uint8_t)promoted(a, b);
    const uint64_t read_bytes = me_size_add(me_bytes(a), me_bytes(b));
    me_launch_kernel(e, is_cast ? ME_KERNEL_CAST : ME_KERNEL_ELEMENTWISE,
                     me_numel(y), me_size_add(read_bytes, me_bytes(y)));
    tell(e, op, ME_TENSORS(a, b), ME_TENSORS(y));
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

me_tensor *me_pointwise(me_engine *e, const char *op, const me_tensor *a,
                        me_dtype dtype)
{
    return kernel(e, op, a, dtype, me_bytes(a));
}

me_tensor *me_kernel(me_engine *e, me_kernel_class kernel, const char *op,
                     const me_tensor *a, const me_tensor *b, uint64_t bytes)
{
    me_tensor *y = me_empty_like(e, op, a);
    me_launch_kernel(e, kernel, me_numel(y), bytes);
    tell(e, op, ME_TENSORS(a, b), ME_TENSORS(y));
    return y;
}

me_tensor *me_clone_detached(me_engine *e, const me_tensor *a)
{
    return unary(e, "clone", a);
}

static void add_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    (void)e;
    gx[0] = gy[0];
    gx[1] = node->n_inputs > 1 ? gy[0] : NULL;
}

static const me_op add_op = {"AddBackward0", add_backward};

me_tensor *me_add(me_engine *e, me_tensor *a, me_tensor *b)
{
    if (!are_broadcast(e, "+", a, b)) {
        return me_none(e);
    }
    me_node *node = me_record2(e, &add_op, a, b);
    return me_output(e, node, binary(e, "add", a, b));
}

me_tensor *me_add_number(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &add_op, a);
    return me_output(e, node, unary(e, "add", a));
}

static void sub_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    if (me_needs(node, 1)) {
        gx[1] = unary(e, "neg", gy[0]);
    }
    gx[0] = gy[0];
}

static const me_op sub_op = {"SubBackward0", sub_backward};

me_tensor *me_sub(me_engine *e, me_tensor *a, me_tensor *b)
{
    if (!are_broadcast(e, "-", a, b)) {
        return me_none(e);
    }
    me_node *node = me_record2(e, &sub_op, a, b);
    return me_output(e, node, binary(e, "sub", a, b));
}

/** grad · (2 · x¹), as FunctionsManual.cpp's pow_backward writes it. */
static void square_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    me_tensor *power = unary(e, "pow", node->saved[0]);
    me_tensor *doubled = scaled_by_number(e, power);
    gx[0] = binary(e, "mul", gy[0], doubled);
    me_drop(e, doubled);
    me_drop(e, power);
}

static const me_op square_op = {"PowBackward0", square_backward};

me_tensor *me_square(me_engine *e, me_tensor *a)
{
    const me_frame frame = me_enter(e);
    a = me_autocast_float(e, a);
    me_node *node = me_record1(e, &square_op, a);
    me_save(e, node, 0, a);
    return me_leave(e, frame, me_output(e, node, unary(e, "pow", a)));
}

enum {
    MUL_SAVED_OTHER,
    MUL_SAVED_SELF
};

static void mul_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    if (me_needs(node, 1)) {
        gx[1] = binary(e, "mul", gy[0], node->saved[MUL_SAVED_SELF]);
    }
    if (me_needs(node, 0)) {
        gx[0] = binary(e, "mul", gy[0], node->saved[MUL_SAVED_OTHER]);
    }
}

static const me_op mul_op = {"MulBackward0", mul_backward};

me_tensor *me_mul(me_engine *e, me_tensor *a, me_tensor *b)
{
    if (!are_broadcast(e, "*", a, b)) {
        return me_none(e);
    }
    me_node *node = me_record2(e, &mul_op, a, b);
    me_save(e, node, MUL_SAVED_OTHER, a->requires_grad ? b : NULL);
    me_save(e, node, MUL_SAVED_SELF, b->requires_grad ? a : NULL);
    return me_output(e, node, binary(e, "mul", a, b));
}

static void unary_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    gx[0] = unary(e, node->op->name, gy[0]);
}

static const me_op mul_number_op = {"MulBackward0", unary_backward};
static const me_op div_number_op = {"DivBackward0", unary_backward};
static const me_op neg_op = {"NegBackward0", unary_backward};

/** What was saved of @p a is not what it was (bump_version()). */
static void changed(const me_tensor *a)
{
    if (a->storage != NULL) {
        a->storage->version++;
    }
}

static me_tensor *in_place(me_engine *e, const me_op *op, me_tensor *a)
{
    me_node *node = me_record1(e, op, a);
    changed(a);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(a), 2 * me_bytes(a));
    return me_output(e, node, a);
}

me_tensor *me_add_number_in_place(me_engine *e, me_tensor *a)
{
    return in_place(e, &add_op, a);
}

me_tensor *me_mul_number(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &mul_number_op, a);
    return me_output(e, node, unary(e, "mul", a));
}

/** -0.5 · grad · result³. */
static void rsqrt_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_tensor *scaled = scaled_by_number(e, gy[0]);
    me_tensor *cube = unary(e, "pow", node->saved[0]);
    gx[0] = unary(e, "mul", scaled);
    me_drop(e, cube);
    me_drop(e, scaled);
}

static const me_op rsqrt_op = {"RsqrtBackward0", rsqrt_backward};

me_tensor *me_rsqrt(me_engine *e, me_tensor *a)
{
    const me_frame frame = me_enter(e);
    a = me_autocast_float(e, a);
    me_node *node = me_record1(e, &rsqrt_op, a);
    me_tensor *y = me_dtype_is_floating((me_dtype)a->dtype)
                       ? unary(e, "rsqrt", a)
                       : me_pointwise(e, "rsqrt", a, ME_DTYPE_FLOAT32);
    me_save(e, node, 0, y);
    return me_leave(e, frame, me_output(e, node, y));
}

me_tensor *me_neg(me_engine *e, me_tensor *a)
{
    me_node *node = me_record1(e, &neg_op, a);
    return me_output(e, node, unary(e, "neg", a));
}

me_tensor *me_div(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record1(e, &div_number_op, a);
    me_save(e, node, 0, b);
    return me_output(e, node, unary(e, "div", a));
}

me_tensor *me_div_number_in_place(me_engine *e, me_tensor *a)
{
    return in_place(e, &div_number_op, a);
}

me_tensor *me_div_in_place(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record1(e, &div_number_op, a);
    me_save(e, node, 0, b);
    changed(a);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(a), 2 * me_bytes(a));
    return me_output(e, node, a);
}

/** One gradient from the saved input. */
static void activation_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *saved = node->saved[0];
    const bool is_wider = wider(gy[0], saved) == gy[0];
    gx[0] = me_kernel(e, (me_kernel_class)node->data.n[0], node->op->name,
                      is_wider ? gy[0] : saved, is_wider ? saved : gy[0],
                      3 * me_bytes(gy[0]));
}

static const me_op silu_op = {"SiluBackward0", activation_backward};
static const me_op gelu_op = {"GeluBackward0", activation_backward};

static me_tensor *activation(me_engine *e, const me_op *op,
                             me_kernel_class kernel, const char *name,
                             me_tensor *x)
{
    me_node *node = me_record1(e, op, x);
    if (node != NULL) {
        node->data.n[0] = (uint64_t)kernel;
    }
    me_save(e, node, 0, x);
    return me_output(e, node,
                     me_kernel(e, kernel, name, x, NULL, 2 * me_bytes(x)));
}

me_tensor *me_silu(me_engine *e, me_tensor *x)
{
    return activation(e, &silu_op, ME_KERNEL_SILU, "silu", x);
}

me_tensor *me_gelu(me_engine *e, me_tensor *x)
{
    return activation(e, &gelu_op, ME_KERNEL_GELU, "gelu", x);
}

/** Compiled code lets go of what was saved before the gradients go. */
static void compiled_activation_backward(me_engine *e, me_node *node,
                                         me_tensor *const *gy, me_tensor **gx)
{
    activation_backward(e, node, gy, gx);
    me_clear(e, &node->saved[0]);
}

static const me_op relu_op = {"ReluBackward0", activation_backward};

me_tensor *me_relu(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &relu_op, x);
    if (node != NULL) {
        node->data.n[0] = ME_KERNEL_ELEMENTWISE;
    }
    me_tensor *y = unary(e, "relu", x);
    me_save(e, node, 0, y);
    return me_output(e, node, y);
}

me_tensor *me_relu_in_place(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &relu_op, x);
    if (node != NULL) {
        node->data.n[0] = ME_KERNEL_ELEMENTWISE;
    }
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(x), 2 * me_bytes(x));
    me_tell_op(e, "relu_.default", ME_TENSORS(x), ME_TENSORS(x));
    changed(x);
    me_save(e, node, 0, x);
    return me_output(e, node, x);
}

static void squared_relu_backward(me_engine *e, me_node *node,
                                  me_tensor *const *gy, me_tensor **gx)
{
    compiled_activation_backward(e, node, gy, gx);
    me_compiled_run(e, ME_COMPILED_SQUARED_RELU_BACKWARD, NULL);
}

static const me_op squared_relu_op = {"CompiledFunctionBackward",
                                      squared_relu_backward};

me_tensor *me_squared_relu(me_engine *e, me_tensor *x)
{
    me_tensor *y =
        activation(e, &squared_relu_op, ME_KERNEL_COMPILED, "squared_relu", x);
    me_compiled_run(e, ME_COMPILED_SQUARED_RELU, NULL);
    return y;
}

static void quick_gelu_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    compiled_activation_backward(e, node, gy, gx);
    me_compiled_run(e, ME_COMPILED_QUICK_GELU_BACKWARD, NULL);
}

static const me_op quick_gelu_op = {"CompiledFunctionBackward",
                                    quick_gelu_backward};

me_tensor *me_quick_gelu(me_engine *e, me_tensor *x)
{
    me_tensor *y =
        activation(e, &quick_gelu_op, ME_KERNEL_COMPILED, "quick_gelu", x);
    me_compiled_run(e, ME_COMPILED_QUICK_GELU, NULL);
    return y;
}
