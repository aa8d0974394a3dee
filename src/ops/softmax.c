/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/softmax.h"

#include "base/size.h"
#include "ops/elementwise.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

/** The result of a softmax kernel, like @p x in another type. */
static me_tensor *softmax_kernel(me_engine *e, const char *op,
                                 const me_tensor *x, me_dtype dtype,
                                 uint64_t read_bytes)
{
    me_tensor *y = me_empty_like_as(e, op, x, dtype);
    me_launch_kernel(e, ME_KERNEL_SOFTMAX, me_numel(y),
                     me_size_add(read_bytes, me_bytes(y)));
    return y;
}

/** The kernel takes gradient · result as a tensor of its own, and makes the type
 *  that the forward read. */
static void softmax_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    gx[0] = softmax_kernel(e, "_softmax_backward_data", gy[0],
                           (me_dtype)node->data.n[0], 2 * me_bytes(gy[0]));
    me_tensor *scaled = me_kernel(e, ME_KERNEL_ELEMENTWISE, "mul", gy[0], NULL,
                                  3 * me_bytes(gy[0]));
    me_drop(e, scaled);
}

static const me_op softmax_op = {"SoftmaxBackward0", softmax_backward};

/** From the type that @p x has to @p dtype, in one kernel. */
static me_tensor *softmax_to(me_engine *e, me_tensor *x, me_dtype dtype)
{
    me_tell_device_query(e, x); /* half to float? */
    me_node *node = me_record1(e, &softmax_op, x);
    if (node != NULL) {
        node->data.n[0] = x->dtype;
    }
    me_tensor *y = softmax_kernel(e, "_softmax", x, dtype, me_bytes(x));
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

static void masked_fill_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    (void)node;
    gx[0] = me_pointwise(e, "masked_fill", gy[0], (me_dtype)gy[0]->dtype);
}

static const me_op masked_fill_op = {"MaskedFillBackward0",
                                     masked_fill_backward};

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
    me_tensor *filled = me_pointwise(e, "masked_fill", gy[0], dtype);
    me_drop(e, slice);
    me_drop(e, filled);
}

static const me_op copy_slices_op = {"CopySlices", copy_slices_backward};

/** The view's own node after the write: its gradient is made anew. */
static void regenerate_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    (void)node;
    gx[0] =
        me_pointwise(e, "AsStridedBackward0", gy[0], (me_dtype)gy[0]->dtype);
}

static const me_op regenerate_op = {"AsStridedBackward0", regenerate_backward};

me_tensor *me_masked_fill_in_place(me_engine *e, me_tensor *x,
                                   const me_tensor *mask)
{
    me_launch_kernel(e, ME_KERNEL_MASKED_FILL, me_numel(x), 2 * me_bytes(x));
    if (!x->is_view) {
        me_node *node = me_record1(e, &masked_fill_op, x);
        me_save(e, node, 0, mask);
        return me_output(e, node, x);
    }
    me_node *slices = me_record1(e, &copy_slices_op, x);
    me_save(e, slices, 0, mask);
    me_output(e, slices, x);
    me_node *view = me_record1(e, &regenerate_op, x);
    return me_output(e, view, x);
}
