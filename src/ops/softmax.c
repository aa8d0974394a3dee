/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/softmax.h"

#include "ops/elementwise.h"
#include "ops/view.h"
#include "tensor/autograd.h"

static const me_op softmax_gradient = {"_softmax_backward_data",
                                       .cost = ME_COST(SOFTMAX, 1, 2, 1)};
static const me_op scaled_gradient = {"mul", "mul.Tensor",
                                      .cost = ME_POINTWISE};

/** The kernel takes gradient · result as a tensor of its own, which is copied
 *  where the gradient and so it are transposed, and makes the type that the
 *  forward read. */
static void softmax_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_tensors read = ME_TENSORS(gy[0], node->saved[0]);
    const bool is_transposed = me_is_dense(&gy[0]->shape, gy[0]->strides) &&
                               !me_tensor_is_contiguous(gy[0]);
    gx[0] = me_kernel_as(e, &softmax_gradient, read, (me_dtype)node->data.n[0]);
    me_tensor *scaled = me_kernel_like(e, &scaled_gradient, read);
    if (is_transposed) {
        me_drop(e,
                me_pointwise(e, "contiguous", scaled, (me_dtype)gy[0]->dtype));
    }
    me_drop(e, scaled);
}

static const me_op softmax_op =
    ME_OP("_softmax", NULL, ME_COST(SOFTMAX, 1, 1, 1), "SoftmaxBackward0",
          .backward = softmax_backward, .queries = 1 /* half to float? */);

/** From the type that @p x has to @p dtype, in one kernel. */
static me_tensor *softmax_to(me_engine *e, me_tensor *x, me_dtype dtype)
{
    me_node *node = me_record1(e, &softmax_op, x);
    if (node != NULL) {
        node->data.n[0] = x->dtype;
    }
    me_tensor *y = me_kernel_as(e, &softmax_op, ME_TENSORS(x), dtype);
    me_save(e, node, 0, y);
    return me_output(e, node, y);
}

me_tensor *me_softmax(me_engine *e, me_tensor *x)
{
    return softmax_to(e, x, (me_dtype)x->dtype);
}

me_tensor *me_softmax_in_float32(me_engine *e, me_tensor *x)
{
    if (x->dtype == ME_DTYPE_FLOAT16) {
        return softmax_to(e, x, ME_DTYPE_FLOAT32);
    }
    me_tensor *wide = me_cast(e, x, ME_DTYPE_FLOAT32);
    me_tensor *y = me_softmax(e, wide);
    if (wide != x) {
        me_drop(e, wide);
    }
    return y;
}

/** In place of what arrives; what was saved is read besides. */
static void masked_softmax_backward(me_engine *e, me_node *node,
                                    me_tensor *const *gy, me_tensor **gx)
{
    me_op_launch(e, node->op->gradient, ME_TENSORS(gy[0], node->saved[0]),
                 gy[0]);
    gx[0] = gy[0];
}

static const me_op masked_softmax_gradient = {.cost =
                                                  ME_COST(SOFTMAX, 3, 2, 1)};
static const me_op masked_softmax_op =
    ME_OP("scaled_masked_softmax_forward", NULL, ME_COST(SOFTMAX, 3, 1, 1),
          "ScaledMaskedSoftmaxBackward", .backward = masked_softmax_backward,
          .gradient = &masked_softmax_gradient);

me_tensor *me_scaled_masked_softmax(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &masked_softmax_op, x);
    me_tensor *y = me_kernel_dense(e, &masked_softmax_op, ME_TENSORS(x));
    me_save(e, node, 0, y);
    return me_output(e, node, y);
}

static const me_op masked_fill_gradient = {"masked_fill", .cost = ME_POINTWISE};
static const me_op masked_fill_op =
    ME_OP(NULL, NULL, ME_COST(MASKED_FILL, 1, 1, 1), "MaskedFillBackward0",
          .backward = me_gradient_backward, .gradient = &masked_fill_gradient);

/**
 * The write went through a view: the base's gradient is copied, the slice of
 * it cloned, the fill's gradient made, and that copied back into the slice.
 */
static void copy_slices_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    (void)node;
    const me_dtype dtype = gy[0]->dtype;
    gx[0] = me_pointwise(e, "CopySlices.base", gy[0], dtype);
    me_tensor *slice = me_pointwise(e, "CopySlices.slice", gy[0], dtype);
    me_tensor *filled =
        me_kernel_like(e, &masked_fill_gradient, ME_TENSORS(gy[0]));
    me_drop(e, slice);
    me_drop(e, filled);
}

static const me_op copy_slices_op = ME_NODE("CopySlices", copy_slices_backward);

me_tensor *me_masked_fill_in_place(me_engine *e, me_tensor *x,
                                   const me_tensor *mask)
{
    me_op_launch(e, &masked_fill_op, ME_TENSORS(x), x);
    if (!x->is_view) {
        me_node *node = me_record1(e, &masked_fill_op, x);
        me_save(e, node, 0, mask);
        return me_output(e, node, x);
    }
    me_node *slices = me_record1(e, &copy_slices_op, x);
    me_save(e, slices, 0, mask);
    me_output(e, slices, x);
    return me_regenerate_view(e, x);
}
