/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/index.h"

#include "base/size.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** Zeros in the shape of the input, into which the gradient is written. */
static me_tensor *zeros_of_input(me_engine *e, const me_node *node,
                                 const me_tensor *gradient)
{
    me_tensor *zeros = me_empty(e, node->op->name, (me_dtype)gradient->dtype,
                                node->data.shape);
    me_launch_kernel(e, ME_KERNEL_INDEX, 0,
                     me_size_add(me_bytes(zeros), 2 * me_bytes(gradient)));
    return zeros;
}

static void remember_shape(me_node *node, const me_tensor *x)
{
    if (node != NULL) {
        node->data.shape = x->shape;
    }
}

static void scattered_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = zeros_of_input(e, node, gy[0]);
}

static const me_op topk_op = {"TopkBackward0", scattered_backward};

me_tensor *me_topk(me_engine *e, me_tensor *x, uint64_t k,
                   me_tensor **indices_out)
{
    me_node *node = me_record1(e, &topk_op, x);
    remember_shape(node, x);
    const me_shape shape = ME_SHAPE(me_dim(x, 0), k);
    me_tensor *values = me_empty(e, "topk", (me_dtype)x->dtype, shape);
    me_tensor *indices = me_empty(e, "topk", ME_DTYPE_INT64, shape);
    me_launch_kernel(e, ME_KERNEL_INDEX, 0, me_bytes(x));
    me_save(e, node, 0, indices);
    *indices_out = indices;
    return me_output(e, node, values);
}

/** The gradient of the values: gathered where they were put. */
static void scatter_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    gx[0] = me_empty(e, "gather", (me_dtype)gy[0]->dtype, node->data.shape);
    me_launch_kernel(e, ME_KERNEL_INDEX, 0, 2 * me_bytes(gx[0]));
}

static const me_op scatter_op = {"ScatterBackward0", scatter_backward};

me_tensor *me_scatter_into_zeros(me_engine *e, const me_tensor *x,
                                 me_tensor *index, me_tensor *values)
{
    me_tensor *zeros =
        me_pointwise(e, "zeros_like", x, (me_dtype)values->dtype);
    me_node *node = me_record1(e, &scatter_op, values);
    remember_shape(node, values);
    me_save(e, node, 0, index);
    me_tensor *y = me_pointwise(e, "scatter", zeros, (me_dtype)values->dtype);
    me_drop(e, zeros);
    return me_output(e, node, y);
}

/** `y = op(x)` where @p x has no other name. */
static me_tensor *then(me_engine *e, const char *op, me_tensor *x,
                       me_dtype dtype)
{
    me_tensor *y = me_pointwise(e, op, x, dtype);
    me_drop(e, x);
    return y;
}

me_tensor *me_scatter_flags(me_engine *e, const me_tensor *x)
{
    me_tensor *y = me_pointwise(e, "zeros_like", x, (me_dtype)x->dtype);
    y = then(e, "int", y, ME_DTYPE_INT32);
    y = then(e, "scatter", y, ME_DTYPE_INT32);
    return then(e, "bool", y, ME_DTYPE_BOOL);
}

static const me_op index_select_op = {"IndexSelectBackward0",
                                      scattered_backward};

/** @p x with other rows. */
static me_tensor *with_rows(me_engine *e, const char *op, const me_tensor *x,
                            uint64_t rows)
{
    me_shape shape = x->shape;
    shape.dim[0] = rows;
    me_tensor *y = me_empty(e, op, (me_dtype)x->dtype, shape);
    me_launch_kernel(e, ME_KERNEL_INDEX, 0, 2 * me_bytes(y));
    return y;
}

me_tensor *me_index_select(me_engine *e, me_tensor *x, me_tensor *index)
{
    me_node *node = me_record1(e, &index_select_op, x);
    remember_shape(node, x);
    me_save(e, node, 0, index);
    return me_output(e, node, with_rows(e, "index_select", x, me_numel(index)));
}

static void index_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    gx[0] = zeros_of_input(e, node, gy[0]);
    me_index_accumulate(e, me_numel(gy[0]), me_numel(gx[0]));
}

static const me_op index_op = {"IndexBackward0", index_backward};

me_tensor *me_index(me_engine *e, me_tensor *x, me_tensor *index)
{
    me_node *node = me_record1(e, &index_op, x);
    remember_shape(node, x);
    me_save(e, node, 0, index);
    return me_output(e, node, with_rows(e, "index", x, me_numel(index)));
}

static const me_op scatter_add_op = {"ScatterAddBackward0", scatter_backward};

me_tensor *me_scatter_add_rows(me_engine *e, me_tensor *x, me_tensor *index,
                               uint64_t rows)
{
    me_node *node = me_record1(e, &scatter_add_op, x);
    remember_shape(node, x);
    me_save(e, node, 0, index);
    me_tensor *y = with_rows(e, "zeros", x, rows);
    me_launch_kernel(e, ME_KERNEL_INDEX, me_numel(x), 3 * me_bytes(x));
    return me_output(e, node, y);
}

static void masked_select_backward(me_engine *e, me_node *node,
                                   me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = zeros_of_input(e, node, gy[0]);
    me_mask_prefix_sum(e, me_numel(gx[0]));
}

static const me_op masked_select_op = {"MaskedSelectBackward0",
                                       masked_select_backward};

enum {
    MASKED_SELECT_SAVED_MASK,
    MASKED_SELECT_SAVED_SELF
};

me_tensor *me_masked_select(me_engine *e, me_tensor *x, const me_tensor *mask,
                            uint64_t selected)
{
    me_node *node = me_record1(e, &masked_select_op, x);
    remember_shape(node, x);
    me_save(e, node, MASKED_SELECT_SAVED_MASK, mask);
    me_save(e, node, MASKED_SELECT_SAVED_SELF, x);
    me_tensor *found = me_nonzero(e, me_numel(x), selected);
    me_tensor *y =
        me_empty(e, "masked_select", (me_dtype)x->dtype, ME_SHAPE(selected));
    me_launch_kernel(e, ME_KERNEL_INDEX, 0,
                     me_size_add(me_bytes(x), me_bytes(y)));
    me_drop(e, found);
    return me_output(e, node, y);
}

me_tensor *me_count_flags(me_engine *e, const me_tensor *x)
{
    const uint64_t columns = me_dim(x, -1);
    me_tensor *counts = me_empty(e, "sum", ME_DTYPE_INT64, ME_SHAPE(columns));
    me_tensor *wide = me_pointwise(e, "to", x, ME_DTYPE_INT64);
    me_reduce(e, &(me_reduction){
                     .inputs = columns == 0 ? 0 : me_numel(x) / columns,
                     .outputs = columns,
                     .is_outer = true,
                     .element_bytes = 8,
                     .accumulator_bytes = 8,
                 });
    me_drop(e, wide);
    return counts;
}
