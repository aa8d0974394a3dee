/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/index.h"

#include "base/size.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

void me_scatter_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    me_gradient_scattered_backward(e, node, gy, gx);
    if (me_is_deterministic(e)) {
        me_tensor *rows = me_arange(e, me_dim(gx[0], 0));
        me_index_put_pairs(e, me_numel(node->saved[0]), me_numel(gx[0]), true);
        me_drop(e, rows);
    }
}

static const me_op topk_gradient = {"TopkBackward0",
                                    .cost = ME_COST(INDEX, 0, 2, 1)};
static const me_op topk_op =
    ME_OP("topk", NULL, ME_COST(INDEX, 0, 1, 0), "TopkBackward0",
          .backward = me_scatter_backward, .gradient = &topk_gradient);

/** The largest of @p x, of @p shape as its indices. */
static me_tensor *topk_to(me_engine *e, me_tensor *x, me_shape shape,
                          me_tensor **indices_out)
{
    me_node *node = me_record1(e, &topk_op, x);
    me_tensor *values =
        me_kernel(e, &topk_op, ME_TENSORS(x), (me_dtype)x->dtype, shape);
    me_tensor *indices = me_empty(e, topk_op.event, ME_DTYPE_INT64, shape);
    me_save(e, node, 0, indices);
    *indices_out = indices;
    return me_output(e, node, values);
}

me_tensor *me_topk(me_engine *e, me_tensor *x, uint64_t k,
                   me_tensor **indices_out)
{
    return topk_to(e, x, me_shape_with_last(&x->shape, k), indices_out);
}

me_tensor *me_topk_rows(me_engine *e, me_tensor *x, uint64_t k,
                        me_tensor **indices_out)
{
    return topk_to(e, x, ME_SHAPE(k, me_dim(x, -1)), indices_out);
}

/** The gradient of the values: gathered where they were put. */
static const me_op gather_kernel = {"gather", .cost = ME_COST(INDEX, 0, 0, 2)};

static const me_op scatter_op =
    ME_OP("scatter", NULL, ME_POINTWISE, "ScatterBackward0",
          .backward = me_gradient_shaped_backward, .gradient = &gather_kernel);

me_tensor *me_scatter_into_zeros(me_engine *e, const me_tensor *x,
                                 me_tensor *index, me_tensor *values)
{
    me_tensor *zeros =
        me_pointwise(e, "zeros_like", x, (me_dtype)values->dtype);
    me_node *node = me_record1(e, &scatter_op, values);
    me_save(e, node, 0, index);
    me_tensor *y = me_kernel_like(e, &scatter_op, ME_TENSORS(zeros));
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

me_tensor *me_scatter_flags_as(me_engine *e, const me_tensor *x)
{
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *y = me_pointwise(e, "zeros_like", x, dtype);
    y = then(e, "scatter", y, dtype);
    return then(e, "bool", y, ME_DTYPE_BOOL);
}

/** `y.index_add_(0, index, x)` beside its result, deterministic: a multiple of
 *  @p x, put where sorted indices say. */
static void add_in_order(me_engine *e, const me_tensor *x, uint64_t indices,
                         uint64_t rows)
{
    me_tensor *multiple = me_pointwise(e, "mul", x, (me_dtype)x->dtype);
    me_index_put_rows(e, indices, rows);
    me_drop(e, multiple);
}

/** index_select_backward(): index_add_() to zeros. */
static void index_select_backward(me_engine *e, me_node *node,
                                  me_tensor *const *gy, me_tensor **gx)
{
    me_gradient_scattered_backward(e, node, gy, gx);
    if (me_is_deterministic(e)) {
        add_in_order(e, gy[0], me_numel(node->saved[0]), me_dim(gx[0], 0));
    }
}

static const me_op index_select_gradient = {"IndexSelectBackward0",
                                            .cost = ME_COST(INDEX, 0, 2, 1)};
static const me_op index_select_op = ME_OP(
    "index_select", NULL, ME_COST(INDEX, 0, 0, 2), "IndexSelectBackward0",
    .backward = index_select_backward, .gradient = &index_select_gradient);

/** @p x with other rows, which are read and written. */
static me_tensor *with_rows(me_engine *e, const me_op *op, const me_tensor *x,
                            uint64_t rows)
{
    me_shape shape = x->shape;
    shape.dim[0] = rows;
    return me_kernel(e, op, ME_TENSORS(x), (me_dtype)x->dtype, shape);
}

/** Rows of @p x by their number, which is saved. */
static me_tensor *picked(me_engine *e, const me_op *op, me_tensor *x,
                         me_tensor *index)
{
    me_node *node = me_record1(e, op, x);
    me_save(e, node, 0, index);
    return me_output(e, node, with_rows(e, op, x, me_numel(index)));
}

me_tensor *me_index_select(me_engine *e, me_tensor *x, me_tensor *index)
{
    me_tensor *y = picked(e, &index_select_op, x, index);
    me_fill_resized(e, me_dtype_bytes((me_dtype)x->dtype));
    return y;
}

me_tensor *me_select_chunks(me_engine *e, const me_tensor *x, int32_t dim,
                            uint64_t extent)
{
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[dim] = extent;
    }
    me_tensor *y = me_kernel(e, &index_select_op, ME_TENSORS(x),
                             (me_dtype)x->dtype, shape);
    me_fill_resized(e, me_dtype_bytes((me_dtype)x->dtype));
    return y;
}

static void index_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_gradient_scattered_backward(e, node, gy, gx);
    me_index_accumulate(e, me_numel(gy[0]), me_numel(gx[0]), NULL);
}

static const me_op index_gradient = {"IndexBackward0",
                                     .cost = ME_COST(INDEX, 0, 2, 1)};
static const me_op index_op =
    ME_OP("index", NULL, ME_COST(INDEX, 0, 0, 2), "IndexBackward0",
          .backward = index_backward, .gradient = &index_gradient);

me_tensor *me_index(me_engine *e, me_tensor *x, me_tensor *index)
{
    return picked(e, &index_op, x, index);
}

static void index_rows_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    me_gradient_scattered_backward(e, node, gy, gx);
    me_index_accumulate(e, me_numel(node->saved[0]), me_dim(gx[0], 0), gy[0]);
}

static const me_op index_rows_op =
    ME_OP("index", NULL, ME_COST(INDEX, 0, 0, 2), "IndexBackward0",
          .backward = index_rows_backward, .gradient = &index_gradient);

me_tensor *me_index_rows(me_engine *e, me_tensor *weight, me_tensor *indices)
{
    me_node *node = me_record1(e, &index_rows_op, weight);
    me_save(e, node, 0, indices);
    me_shape shape = indices->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[shape.ndim++] = me_dim(weight, 1);
    }
    me_tensor *y = me_kernel(e, &index_rows_op, ME_TENSORS(weight),
                             (me_dtype)weight->dtype, shape);
    return me_output(e, node, y);
}

static const me_op zeros_kernel = {"zeros", .cost = ME_COST(INDEX, 0, 0, 2)};
static const me_op scatter_add_op = {.node = "ScatterAddBackward0",
                                     .backward = me_gradient_shaped_backward,
                                     .gradient = &gather_kernel};

me_tensor *me_scatter_add_rows(me_engine *e, me_tensor *x, me_tensor *index,
                               uint64_t rows)
{
    me_node *node = me_record1(e, &scatter_add_op, x);
    me_save(e, node, 0, index);
    me_tensor *y = with_rows(e, &zeros_kernel, x, rows);
    me_launch_kernel(e, ME_KERNEL_INDEX, me_numel(x), 3 * me_bytes(x));
    return me_output(e, node, y);
}

enum {
    INDEX_ADD_SAVED_INDEX,
    INDEX_ADD_SAVED_SOURCE
};

static void index_add_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = with_rows(e, &index_select_op, gy[0],
                      me_numel(node->saved[INDEX_ADD_SAVED_INDEX]));
    me_fill_resized(e, me_dtype_bytes((me_dtype)gy[0]->dtype));
}

static const me_op index_add_op = {.node = "IndexAddBackward0",
                                   .backward = index_add_backward};

me_tensor *me_index_add_rows(me_engine *e, me_tensor *y, me_tensor *index,
                             me_tensor *x)
{
    me_node *node = me_record1(e, &index_add_op, x);
    me_save(e, node, INDEX_ADD_SAVED_INDEX, index);
    me_save(e, node, INDEX_ADD_SAVED_SOURCE, x); // of which expand_as() asks
    add_in_order(e, x, me_numel(index), me_dim(y, 0));
    me_launch_kernel(e, ME_KERNEL_INDEX, me_numel(x), 3 * me_bytes(x));
    return me_output(e, node, y);
}

enum {
    INDEX_PUT_SAVED_COLUMNS,
    INDEX_PUT_SAVED_ROWS
};

/** `grad.index((rows, columns))`: the rows' numbers are copied for each column, so
 *  that both have the same strides. */
static void index_put_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *columns = node->saved[INDEX_PUT_SAVED_COLUMNS];
    me_tensor *rows = me_pointwise(e, "contiguous", columns, ME_DTYPE_INT64);
    gx[0] = me_kernel(e, &index_op, ME_TENSORS(gy[0]), (me_dtype)gy[0]->dtype,
                      columns->shape);
    me_drop(e, rows);
}

static const me_op index_put_op = {.node = "IndexPutBackward0",
                                   .backward = index_put_backward};

me_tensor *me_index_put(me_engine *e, me_tensor *y, me_tensor *rows,
                        me_tensor *columns, me_tensor *values)
{
    me_node *node = me_record1(e, &index_put_op, values);
    me_save(e, node, INDEX_PUT_SAVED_COLUMNS, columns);
    me_save(e, node, INDEX_PUT_SAVED_ROWS, rows);
    me_index_put_pairs(e, me_numel(columns), me_numel(y), true);
    me_launch_kernel(e, ME_KERNEL_INDEX, me_numel(values),
                     3 * me_bytes(values));
    return me_output(e, node, y);
}

static void masked_select_backward(me_engine *e, me_node *node,
                                   me_tensor *const *gy, me_tensor **gx)
{
    me_gradient_scattered_backward(e, node, gy, gx);
    me_mask_prefix_sum(e, me_numel(gx[0]));
}

static const me_op masked_select_gradient = {"MaskedSelectBackward0",
                                             .cost = ME_COST(INDEX, 0, 2, 1)};
static const me_op masked_select_op = ME_OP(
    "masked_select", NULL, ME_COST(INDEX, 0, 1, 1), "MaskedSelectBackward0",
    .backward = masked_select_backward, .gradient = &masked_select_gradient);

enum {
    MASKED_SELECT_SAVED_MASK,
    MASKED_SELECT_SAVED_SELF
};

me_tensor *me_masked_select(me_engine *e, me_tensor *x, const me_tensor *mask,
                            uint64_t selected)
{
    me_node *node = me_record1(e, &masked_select_op, x);
    me_save(e, node, MASKED_SELECT_SAVED_MASK, mask);
    me_save(e, node, MASKED_SELECT_SAVED_SELF, x);
    me_tensor *found = me_nonzero(e, me_numel(x), selected);
    me_tensor *y = me_kernel(e, &masked_select_op, ME_TENSORS(x),
                             (me_dtype)x->dtype, ME_SHAPE(selected));
    me_fill_resized(e, me_dtype_bytes((me_dtype)x->dtype));
    me_drop(e, found);
    return me_output(e, node, y);
}

/** Flags are added up as int64, into which all are copied first. */
static me_tensor *count_into(me_engine *e, const me_tensor *x, me_shape shape)
{
    me_tensor *counts = me_empty(e, "sum", ME_DTYPE_INT64, shape);
    const uint64_t outputs = me_shape_numel(&shape);
    me_tensor *wide = me_pointwise(e, "to", x, ME_DTYPE_INT64);
    me_reduce(e, &(me_reduction){
                     .inputs = outputs == 0 ? 0 : me_numel(x) / outputs,
                     .outputs = outputs,
                     .is_outer = shape.ndim > 0,
                     .element_bytes = 8,
                     .accumulator_bytes = 8,
                 });
    me_drop(e, wide);
    return counts;
}

me_tensor *me_count_flags(me_engine *e, const me_tensor *x)
{
    return count_into(e, x, ME_SHAPE(me_dim(x, -1)));
}

me_tensor *me_count_nonzero(me_engine *e, uint64_t numel)
{
    me_tensor *mask = me_empty(e, "ne", ME_DTYPE_BOOL, ME_SHAPE(numel));
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, numel, me_size_mul(5, numel));
    me_tensor *count = count_into(e, mask, ME_SCALAR);
    me_drop(e, mask);
    return count;
}
