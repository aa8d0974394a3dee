/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "ops/autocast_casts.h"
#include "ops/elementwise.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

/** The kernel wants dense rows: a view with holes is copied first. */
static me_tensor *rows_of(me_engine *e, const me_tensor *x)
{
    if (me_tensor_is_contiguous(x)) {
        return NULL;
    }
    me_tensor *copy =
        me_empty_inside(e, "contiguous", (me_dtype)x->dtype, x->shape);
    me_launch_kernel(e, ME_KERNEL_STRIDED, 0, 2 * me_bytes(x));
    return copy;
}

/** One float32 a row. */
static me_tensor *statistic(me_engine *e, const char *op, const me_tensor *x)
{
    me_shape shape = x->shape;
    if (shape.ndim > 0) {
        shape.dim[shape.ndim - 1] = 1;
    }
    return me_empty(e, op, ME_DTYPE_FLOAT32, shape);
}

static me_tensor *parameter_gradient(me_engine *e, const me_tensor *parameter,
                                     const char *op)
{
    return me_empty(e, op, (me_dtype)parameter->dtype, parameter->shape);
}

/** @param passes  over the tensor: 2 forward (read, write); 5 backward, of
 *                 the input's gradient and the weights' */
static me_tensor *norm_output(me_engine *e, const char *op, const me_tensor *x,
                              uint64_t passes)
{
    me_tensor *y = me_empty(e, op, (me_dtype)x->dtype, x->shape);
    me_launch_kernel(e, ME_KERNEL_NORM, me_size_mul(5, me_numel(x)),
                     me_size_mul(passes, me_bytes(x)));
    return y;
}

/**
 * Long and narrow inputs: blocks of partial sums, and then their sum takes the
 * place of the first gradient (aten/native/cuda/layer_norm_kernel.cu,
 * LayerNormBackwardKernelImplInternal).
 *
 * @param count      weight, or weight and bias
 * @param gradients  replaced
 */
static void sum_blocks(me_engine *e, const me_tensor *x, int count,
                       me_tensor **gradients)
{
    const uint64_t columns = me_dim(x, -1);
    const uint64_t rows = columns == 0 ? 0 : me_numel(x) / columns;
    const uint64_t multiprocessors = me_engine_card(e)->multiprocessors;
    if (rows <= UINT64_C(64) * 1024 || columns / 32 >= multiprocessors / 2) {
        return;
    }
    const uint64_t n =
        me_min_u64(32768 / me_div_up(columns, 32), me_div_up(rows, 32));
    me_tensor *blocks[2] = {NULL, NULL};
    for (int i = 0; i < count; i++) {
        blocks[i] = me_empty_inside(e, "gamma_beta_blocks", gradients[i]->dtype,
                                    ME_SHAPE(n, columns));
    }
    for (int i = 0; i < count; i++) {
        me_tensor *first = gradients[i];
        gradients[i] = me_sum_to(e, blocks[i], &first->shape);
        me_drop(e, first);
    }
    for (int i = count; i > 0; i--) {
        me_drop(e, blocks[i - 1]);
    }
}

enum {
    LAYER_NORM_SAVED_INPUT,
    LAYER_NORM_SAVED_MEAN,
    LAYER_NORM_SAVED_RSTD,
    LAYER_NORM_SAVED_WEIGHT,
    LAYER_NORM_SAVED_BIAS
};

static void layer_norm_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[LAYER_NORM_SAVED_INPUT];
    me_tensor *copy = rows_of(e, x);
    if (me_needs(node, 0)) {
        gx[0] = norm_output(e, "native_layer_norm_backward", gy[0], 5);
    }
    if (me_needs(node, 1) || me_needs(node, 2)) { /* one kernel for both */
        gx[1] = parameter_gradient(e, node->saved[LAYER_NORM_SAVED_WEIGHT],
                                   "native_layer_norm_backward");
        gx[2] = parameter_gradient(e, node->saved[LAYER_NORM_SAVED_BIAS],
                                   "native_layer_norm_backward");
        me_drop(e, rows_of(e, gy[0]));
        sum_blocks(e, x, 2, gx + 1);
    }
    me_drop(e, copy);
    me_tell_op(e, "native_layer_norm_backward.default",
               ME_TENSORS(gy[0], x, node->saved[LAYER_NORM_SAVED_MEAN],
                          node->saved[LAYER_NORM_SAVED_RSTD],
                          node->saved[LAYER_NORM_SAVED_WEIGHT],
                          node->saved[LAYER_NORM_SAVED_BIAS]),
               ME_TENSORS(gx[0], gx[1], gx[2]));
}

static const me_op layer_norm_op = {.node = "NativeLayerNormBackward0",
                                    .backward = layer_norm_backward};

/** Its CUDA kernels know one type of input, weight and bias. */
static bool is_of_one_type(me_engine *e, const me_tensor *x,
                           const me_tensor *weight, const me_tensor *bias)
{
    const bool is_floating = me_dtype_is_floating((me_dtype)x->dtype);
    if (me_engine_is_ok(e) && (!is_floating || x->dtype != weight->dtype ||
                               x->dtype != bias->dtype)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "LayerNorm of %s weights gets %s: PyTorch's CUDA kernel "
                       "wants one type of both, by dtype of the module or a "
                       "cast of its input",
                       me_dtype_name((me_dtype)weight->dtype),
                       me_dtype_name((me_dtype)x->dtype));
    }
    return me_engine_is_ok(e);
}

me_tensor *me_layer_norm(me_engine *e, me_tensor *x, me_tensor *weight,
                         me_tensor *bias)
{
    const me_frame frame = me_enter(e);
    bias = me_autocast_float(e, bias);
    weight = me_autocast_float(e, weight);
    x = me_autocast_float(e, x);
    if (!is_of_one_type(e, x, weight, bias)) {
        return me_leave(e, frame, me_none(e));
    }
    me_node *node =
        me_record(e, &layer_norm_op, 3, (me_tensor *[]){x, weight, bias});
    me_tensor *copy = rows_of(e, x);
    me_tensor *y = norm_output(e, "native_layer_norm", x, 2);
    me_tensor *mean = statistic(e, "native_layer_norm", x);
    me_tensor *rstd = statistic(e, "native_layer_norm", x);
    me_save(e, node, LAYER_NORM_SAVED_INPUT, x);
    me_save(e, node, LAYER_NORM_SAVED_MEAN, mean);
    me_save(e, node, LAYER_NORM_SAVED_RSTD, rstd);
    me_save(e, node, LAYER_NORM_SAVED_WEIGHT, weight);
    me_save(e, node, LAYER_NORM_SAVED_BIAS, bias);
    me_drop(e, copy);
    me_tell_op(e, "native_layer_norm.default", ME_TENSORS(x, weight, bias),
               ME_TENSORS(y, mean, rstd));
    me_drop(e, rstd);
    me_drop(e, mean);
    return me_leave(e, frame, me_output(e, node, y));
}

enum {
    RMS_NORM_SAVED_INPUT,
    RMS_NORM_SAVED_RSTD,
    RMS_NORM_SAVED_WEIGHT
};

static void rms_norm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    const me_tensor *x = node->saved[RMS_NORM_SAVED_INPUT];
    me_tensor *copy = rows_of(e, x);
    if (me_needs(node, 0)) {
        gx[0] = norm_output(e, "_fused_rms_norm_backward", gy[0], 5);
    }
    if (me_needs(node, 1)) {
        gx[1] = parameter_gradient(e, node->saved[RMS_NORM_SAVED_WEIGHT],
                                   "_fused_rms_norm_backward");
        me_drop(e, rows_of(e, gy[0]));
        sum_blocks(e, x, 1, gx + 1);
    }
    me_drop(e, copy);
    me_tell_op(e, "_fused_rms_norm_backward.default",
               ME_TENSORS(gy[0], x, node->saved[RMS_NORM_SAVED_RSTD],
                          node->saved[RMS_NORM_SAVED_WEIGHT]),
               ME_TENSORS(gx[0], gx[1]));
}

static const me_op rms_norm_op = {.node = "FusedRmsNormBackward0",
                                  .backward = rms_norm_backward};

/** rms_norm_composite() of layer_norm.cpp: x · rsqrt(mean(x²) + eps) · weight in
 *  float32, and that as the input is; there is no kernel for an input and a
 *  weight of two types. */
static me_tensor *composite_rms_norm(me_engine *e, me_tensor *x,
                                     me_tensor *weight)
{
    const me_frame frame = me_enter(e);
    me_tensor *input = me_cast(e, x, ME_DTYPE_FLOAT32);
    me_tensor *squares = me_square(e, input);
    me_tensor *mean = me_add_number_in_place(e, me_mean_last(e, squares));
    me_tensor *scale = me_rsqrt(e, mean);
    me_drop(e, mean);
    me_drop(e, squares);
    me_tensor *scaled = me_mul(e, input, scale);
    me_tensor *product = me_mul(e, scaled, weight);
    me_drop(e, scaled);
    if (input != x) {
        me_drop(e, input);
    }
    me_tell_device_query(e, x); /* type_as() */
    me_tensor *y = me_cast(e, product, (me_dtype)x->dtype);
    if (y != product) {
        me_drop(e, product);
    }
    return me_leave(e, frame, y);
}

me_tensor *me_rms_norm(me_engine *e, me_tensor *x, me_tensor *weight)
{
    if (!me_dtype_is_floating((me_dtype)x->dtype)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "RMSNorm gets %s, and is of floating-point numbers "
                       "alone: .float() makes such",
                       me_dtype_name((me_dtype)x->dtype));
        return me_none(e);
    }
    if (me_engine_is_ok(e) && x->dtype != weight->dtype) {
        return composite_rms_norm(e, x, weight);
    }
    me_node *node = me_record2(e, &rms_norm_op, x, weight);
    me_tensor *copy = rows_of(e, x);
    me_tensor *y = norm_output(e, "_fused_rms_norm", x, 2);
    me_tensor *rstd = statistic(e, "_fused_rms_norm", x);
    me_save(e, node, RMS_NORM_SAVED_INPUT, x);
    me_save(e, node, RMS_NORM_SAVED_RSTD, rstd);
    me_save(e, node, RMS_NORM_SAVED_WEIGHT, weight);
    me_drop(e, copy);
    me_tell_op(e, "_fused_rms_norm.default", ME_TENSORS(x, weight),
               ME_TENSORS(y, rstd));
    me_output(e, node, y);
    if (node != NULL) {
        me_tell_device_query(e, rstd); /* an output with a gradient, too */
    }
    me_drop(e, rstd);
    return y;
}
