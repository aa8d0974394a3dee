/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/layer_norm.h"

#include "base/size.h"
#include "ops/autocast_casts.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

static const me_op copy_kernel = {"contiguous",
                                  .cost = ME_COST(STRIDED, 0, 1, 1)};

/** The kernel wants dense rows: a view with holes is copied first. */
static me_tensor *rows_of(me_engine *e, const me_tensor *x)
{
    if (me_tensor_is_contiguous(x)) {
        return NULL;
    }
    me_tensor *copy =
        me_empty_inside(e, copy_kernel.event, (me_dtype)x->dtype, x->shape);
    me_op_launch(e, &copy_kernel, ME_TENSORS(x), copy);
    return copy;
}

/** One float32 a row. */
static me_tensor *statistic(me_engine *e, const me_op *op, const me_tensor *x)
{
    return me_empty(e, op->event, ME_DTYPE_FLOAT32,
                    me_shape_with_last(&x->shape, 1));
}

static me_tensor *parameter_gradient(me_engine *e, const me_op *op,
                                     const me_tensor *parameter)
{
    return me_empty(e, op->event, (me_dtype)parameter->dtype, parameter->shape);
}

/** The first result, by a kernel of which is told once all are there. */
static me_tensor *norm_output(me_engine *e, const me_op *op, const me_tensor *x)
{
    me_tensor *y = me_empty(e, op->event, (me_dtype)x->dtype, x->shape);
    me_op_launch(e, op, ME_TENSORS(x), y);
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

static const me_op layer_norm_gradient = {"native_layer_norm_backward",
                                          "native_layer_norm_backward.default",
                                          .cost = ME_COST(NORM, 5, 1, 4)};

static void layer_norm_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *x = node->saved[LAYER_NORM_SAVED_INPUT];
    me_tensor *copy = rows_of(e, x);
    if (me_needs(node, 0)) {
        gx[0] = norm_output(e, &layer_norm_gradient, gy[0]);
    }
    if (me_needs(node, 1) || me_needs(node, 2)) { // one kernel for both
        gx[1] = parameter_gradient(e, &layer_norm_gradient,
                                   node->saved[LAYER_NORM_SAVED_WEIGHT]);
        gx[2] = parameter_gradient(e, &layer_norm_gradient,
                                   node->saved[LAYER_NORM_SAVED_BIAS]);
        me_drop(e, rows_of(e, gy[0]));
        sum_blocks(e, x, 2, gx + 1);
    }
    me_drop(e, copy);
    me_op_tell(e, &layer_norm_gradient,
               ME_TENSORS(gy[0], x, node->saved[LAYER_NORM_SAVED_MEAN],
                          node->saved[LAYER_NORM_SAVED_RSTD],
                          node->saved[LAYER_NORM_SAVED_WEIGHT],
                          node->saved[LAYER_NORM_SAVED_BIAS]),
               ME_TENSORS(gx[0], gx[1], gx[2]));
}

static const me_op layer_norm_op = ME_OP(
    "native_layer_norm", "native_layer_norm.default", ME_COST(NORM, 5, 1, 1),
    "NativeLayerNormBackward0", .backward = layer_norm_backward);

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
    me_tensor *y = norm_output(e, &layer_norm_op, x);
    me_tensor *mean = statistic(e, &layer_norm_op, x);
    me_tensor *rstd = statistic(e, &layer_norm_op, x);
    me_save(e, node, LAYER_NORM_SAVED_INPUT, x);
    me_save(e, node, LAYER_NORM_SAVED_MEAN, mean);
    me_save(e, node, LAYER_NORM_SAVED_RSTD, rstd);
    me_save(e, node, LAYER_NORM_SAVED_WEIGHT, weight);
    me_save(e, node, LAYER_NORM_SAVED_BIAS, bias);
    me_drop(e, copy);
    me_op_tell(e, &layer_norm_op, ME_TENSORS(x, weight, bias),
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

static const me_op rms_norm_gradient = {"_fused_rms_norm_backward",
                                        "_fused_rms_norm_backward.default",
                                        .cost = ME_COST(NORM, 5, 1, 4)};

static void rms_norm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    const me_tensor *x = node->saved[RMS_NORM_SAVED_INPUT];
    me_tensor *copy = rows_of(e, x);
    if (me_needs(node, 0)) {
        gx[0] = norm_output(e, &rms_norm_gradient, gy[0]);
    }
    if (me_needs(node, 1)) {
        gx[1] = parameter_gradient(e, &rms_norm_gradient,
                                   node->saved[RMS_NORM_SAVED_WEIGHT]);
        me_drop(e, rows_of(e, gy[0]));
        sum_blocks(e, x, 1, gx + 1);
    }
    me_drop(e, copy);
    me_op_tell(e, &rms_norm_gradient,
               ME_TENSORS(gy[0], x, node->saved[RMS_NORM_SAVED_RSTD],
                          node->saved[RMS_NORM_SAVED_WEIGHT]),
               ME_TENSORS(gx[0], gx[1]));
}

static const me_op rms_norm_op =
    ME_OP("_fused_rms_norm", "_fused_rms_norm.default", ME_COST(NORM, 5, 1, 1),
          "FusedRmsNormBackward0", .backward = rms_norm_backward);

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
    me_tell_device_query(e, x); // type_as()
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
    me_tensor *y = norm_output(e, &rms_norm_op, x);
    me_tensor *rstd = statistic(e, &rms_norm_op, x);
    me_save(e, node, RMS_NORM_SAVED_INPUT, x);
    me_save(e, node, RMS_NORM_SAVED_RSTD, rstd);
    me_save(e, node, RMS_NORM_SAVED_WEIGHT, weight);
    me_drop(e, copy);
    me_op_tell(e, &rms_norm_op, ME_TENSORS(x, weight), ME_TENSORS(y, rstd));
    me_output(e, node, y);
    if (node != NULL) {
        me_tell_device_query(e, rstd); // an output with a gradient, too
    }
    me_drop(e, rstd);
    return y;
}
