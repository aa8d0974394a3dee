/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/view.h"

#include "base/assert.h"
#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

#include <string.h>

static void identity_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

/** Dense copies in row-major order, by the operation that makes them. */
static const me_op clone_kernel = {"clone", "clone.default",
                                   .cost = ME_COST(STRIDED, 0, 1, 1)};
static const me_op contiguous_op =
    ME_OP("contiguous", "clone.default", ME_COST(STRIDED, 0, 1, 1),
          "CloneBackward0", .backward = identity_backward,
          .queries = 1 /* python_variable_methods.cpp's guard */);
static const me_op reshape_op =
    ME_OP("reshape", "clone.default", ME_COST(STRIDED, 0, 1, 1),
          "CloneBackward0", .backward = identity_backward);
static const me_op clone_op =
    ME_OP("clone", "clone.default", ME_COST(COPY, 0, 0, 2), "CloneBackward0",
          .backward = identity_backward);
/** What a kernel puts together: all of it is read and written. */
static const me_op cat_kernel = {"cat", .cost = ME_COST(STRIDED, 0, 0, 2)};

/** reshape() that makes a view of what is no row-major tensor first asks what the
 *  device is not: XLA, lazy, IPU (native/TensorShape.cpp). */
static void tell_reshape(me_engine *e, const me_tensor *x)
{
    me_tell_device_queries(e, me_tensor_is_contiguous(x) ? NULL : x, 3);
}

static const me_op view_op;
static const me_op unsafe_view_op;

/** @p x in another shape: a view, or a copy that is not on the tape. */
static me_tensor *reshape_data(me_engine *e, const me_tensor *x,
                               const me_shape *shape)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (me_strides_reshape(&x->shape, x->strides, shape, strides)) {
        me_tensor *y = me_alias(e, x, *shape, strides);
        tell_reshape(e, x);
        me_op_tell(e, &view_op, ME_TENSORS(x), ME_TENSORS(y));
        return y;
    }
    me_tensor *copy = me_kernel_dense(e, &clone_kernel, ME_TENSORS(x));
    copy->shape = *shape;
    me_strides_contiguous(shape, copy->strides);
    me_op_tell(e, &unsafe_view_op, ME_TENSORS(copy), ME_TENSORS(copy));
    return copy;
}

static void view_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    gx[0] = reshape_data(e, gy[0], &node->data.shape);
}

static const me_op view_op = {.dispatcher = "view.default",
                              .node = "ViewBackward0",
                              .backward = view_backward,
                              .is_view = true};
static const me_op unsafe_view_op = {.dispatcher = "_unsafe_view.default",
                                     .node = "ViewBackward0",
                                     .backward = view_backward};

static me_tensor *view(me_engine *e, const me_op *op, me_tensor *x,
                       me_shape shape)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (me_engine_is_ok(e) &&
        !me_strides_reshape(&x->shape, x->strides, &shape, strides)) {
        me_engine_fail(e, ME_ERR_INTERNAL,
                       "view: the strides do not allow the shape");
    }
    me_node *node = me_record_view(e, op, x);
    me_tensor *y = me_alias(e, x, shape, strides);
    me_op_tell(e, op, ME_TENSORS(x), ME_TENSORS(y));
    return me_output(e, node, y);
}

me_tensor *me_view(me_engine *e, me_tensor *x, me_shape shape)
{
    return view(e, &view_op, x, shape);
}

me_tensor *me_unsafe_view(me_engine *e, me_tensor *x, me_shape shape)
{
    me_tensor *y = view(e, &unsafe_view_op, x, shape);
    y->is_view = false;
    return y;
}

me_tensor *me_contiguous(me_engine *e, me_tensor *x)
{
    if (me_tensor_is_contiguous(x)) {
        return x;
    }
    me_node *node = me_record1(e, &contiguous_op, x);
    return me_output(e, node,
                     me_kernel_dense(e, &contiguous_op, ME_TENSORS(x)));
}

me_tensor *me_clone(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &clone_op, x);
    return me_output(e, node, me_kernel_like(e, &clone_op, ME_TENSORS(x)));
}

me_tensor *me_reshape(me_engine *e, me_tensor *x, me_shape shape)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    if (me_strides_reshape(&x->shape, x->strides, &shape, strides)) {
        tell_reshape(e, x);
        return me_view(e, x, shape);
    }
    me_node *clone = me_record1(e, &reshape_op, x);
    me_tensor *copy =
        me_output(e, clone, me_kernel_dense(e, &reshape_op, ME_TENSORS(x)));
    me_tensor *y = me_unsafe_view(e, copy, shape);
    me_drop(e, copy);
    return y;
}

static const me_op t_kernel = {.dispatcher = "t.default", .is_view = true};
static const me_op transpose_kernel = {.dispatcher = "transpose.int",
                                       .is_view = true};

/** `x.t()` of a matrix. */
static void tell_transpose(me_engine *e, const me_tensor *x, const me_tensor *y)
{
    me_op_tell(e, x->shape.ndim == 2 ? &t_kernel : &transpose_kernel,
               ME_TENSORS(x), ME_TENSORS(y));
}

static void transpose_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    const int32_t a = (int32_t)node->data.n[0];
    const int32_t b = (int32_t)node->data.n[1];
    me_tensor *x = me_detach(e, gy[0]);
    x->shape.dim[a] = gy[0]->shape.dim[b];
    x->shape.dim[b] = gy[0]->shape.dim[a];
    x->strides[a] = gy[0]->strides[b];
    x->strides[b] = gy[0]->strides[a];
    tell_transpose(e, gy[0], x);
    gx[0] = x;
}

static const me_op transpose_op =
    ME_NODE("TransposeBackward0", transpose_backward);

me_tensor *me_transpose(me_engine *e, me_tensor *x, int32_t a, int32_t b)
{
    a = a < 0 ? a + x->shape.ndim : a;
    b = b < 0 ? b + x->shape.ndim : b;
    me_shape shape = x->shape;
    uint64_t strides[ME_MAX_DIMS] = {0};
    memcpy(strides, x->strides, sizeof strides);
    if (me_engine_is_ok(e)) {
        shape.dim[a] = x->shape.dim[b];
        shape.dim[b] = x->shape.dim[a];
        strides[a] = x->strides[b];
        strides[b] = x->strides[a];
    }
    me_node *node = me_record_view(e, &transpose_op, x);
    if (node != NULL) {
        node->data.n[0] = (uint64_t)a;
        node->data.n[1] = (uint64_t)b;
    }
    me_tensor *y = me_alias(e, x, shape, strides);
    tell_transpose(e, x, y);
    return me_output(e, node, y);
}

static void permute_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    me_tensor *x = me_detach(e, gy[0]);
    for (int32_t i = 0; i < 4; i++) {
        const uint64_t to = node->data.strides[i];
        x->shape.dim[to] = gy[0]->shape.dim[i];
        x->strides[to] = gy[0]->strides[i];
    }
    gx[0] = x;
}

static const me_op permute_op = ME_NODE("PermuteBackward0", permute_backward);

me_tensor *me_permute(me_engine *e, me_tensor *x, const int32_t order[4])
{
    me_shape shape = {.ndim = 4};
    uint64_t strides[ME_MAX_DIMS] = {0};
    for (int32_t i = 0; i < 4; i++) {
        shape.dim[i] = x->shape.dim[order[i]];
        strides[i] = x->strides[order[i]];
    }
    me_node *node = me_record1(e, &permute_op, x);
    for (int32_t i = 0; node != NULL && i < 4; i++) {
        node->data.strides[i] = (uint64_t)order[i];
    }
    return me_output(e, node, me_alias(e, x, shape, strides));
}

/** Undefined pieces are first replaced by zeros, then all are concatenated. */
static void split_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (gy[i] == NULL) {
            me_empty(e, "zeros", (me_dtype)node->output_dtype[i],
                     node->output_shape[i]);
        }
    }
    gx[0] = me_kernel(e, &cat_kernel, ME_NO_TENSORS, me_output_dtype(node, 0),
                      node->data.shape);
}

static const me_op split_op =
    ME_NODE("SplitWithSizesBackward0", split_backward);

/** Elements [begin, end) of a dimension, off the tape. */
static me_tensor *narrow(me_engine *e, const me_tensor *x, int32_t dim,
                         uint64_t begin, uint64_t end)
{
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[dim] = end - begin;
    }
    return me_alias(e, x, shape, x->strides);
}

static void split(me_engine *e, me_tensor *x, int32_t dim, uint32_t count,
                  const uint64_t *sizes, me_tensor **parts_out)
{
    me_node *node = me_record1(e, &split_op, x);
    uint64_t begin = 0;
    for (uint32_t i = 0; i < count; i++) {
        me_tensor *part = narrow(e, x, dim, begin, begin + sizes[i]);
        parts_out[i] = me_output(e, node, part);
        begin += sizes[i];
    }
}

void me_split_last(me_engine *e, me_tensor *x, uint32_t count,
                   const uint64_t *sizes, me_tensor **parts_out)
{
    split(e, x, x->shape.ndim - 1, count, sizes, parts_out);
}

void me_chunk_first(me_engine *e, me_tensor *x, uint32_t count,
                    me_tensor **parts_out)
{
    ME_ASSERT(count > 0 && count <= ME_MAX_OUTPUTS);
    uint64_t sizes[ME_MAX_OUTPUTS];
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = me_dim(x, 0) / count;
    }
    split(e, x, 0, count, sizes, parts_out);
}

static const me_op slice_gradient = {"slice_backward",
                                     .cost = ME_COST(STRIDED, 0, 2, 1)};

/** Zeros of the full shape, into which the gradient is copied. */
static void slice_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    if (node->data.flag) {
        gx[0] = gy[0]; // the slice was the whole dimension
        return;
    }
    gx[0] = me_kernel(e, &slice_gradient, ME_TENSORS(gy[0], gy[0]),
                      me_output_dtype(node, 0), node->data.shape);
}

static const me_op slice_op = ME_NODE("SliceBackward0", slice_backward);

me_tensor *me_slice(me_engine *e, me_tensor *x, int32_t dim, uint64_t begin,
                    uint64_t end)
{
    dim = dim < 0 ? dim + x->shape.ndim : dim;
    me_node *node = me_record1(e, &slice_op, x);
    if (node != NULL) {
        node->data.flag = begin == 0 && end == me_dim(x, dim);
    }
    return me_output(e, node, narrow(e, x, dim, begin, end));
}

me_tensor *me_first_rows(me_engine *e, me_tensor *x, uint64_t end)
{
    me_node *node = me_record1(e, &slice_op, x);
    return me_output(e, node, narrow(e, x, 0, 0, end));
}

me_tensor *me_every_second(me_engine *e, me_tensor *x, uint64_t first)
{
    me_node *node = me_record1(e, &slice_op, x);
    me_tensor *y = me_detach(e, x); // the address is no part of a tensor here
    if (me_engine_is_ok(e)) {
        const int32_t last = x->shape.ndim - 1;
        y->shape.dim[last] = (me_dim(x, -1) + 1 - first) / 2;
        y->strides[last] *= 2;
    }
    return me_output(e, node, y);
}

static void expand_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    // sum_to() gives back what has the shape already.
    gx[0] = me_shape_equal(&gy[0]->shape, &node->data.shape)
                ? gy[0]
                : me_sum_to(e, gy[0], &node->data.shape);
}

static const me_op expand_op = ME_NODE("ExpandBackward0", expand_backward);

me_tensor *me_expand(me_engine *e, me_tensor *x, me_shape shape)
{
    me_node *node = me_record1(e, &expand_op, x);
    me_tensor *y = me_detach(e, x);
    for (int32_t i = 0; me_engine_is_ok(e) && i < shape.ndim; i++) {
        y->strides[i] = shape.dim[i] == x->shape.dim[i] ? y->strides[i] : 0;
        y->shape.dim[i] = shape.dim[i];
    }
    return me_output(e, node, y);
}

static void cat_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    const uint64_t first = node->data.n[0];
    const int32_t last = gy[0]->shape.ndim - 1;
    gx[0] = narrow(e, gy[0], last, 0, first);
    gx[1] = narrow(e, gy[0], last, first, me_dim(gy[0], -1));
}

static const me_op cat_op = ME_NODE("CatBackward0", cat_backward);

me_tensor *me_cat_last(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record2(e, &cat_op, a, b);
    me_shape shape = a->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[shape.ndim - 1] = me_size_add(me_dim(a, -1), me_dim(b, -1));
    }
    if (node != NULL) {
        node->data.n[0] = me_dim(a, -1);
    }
    return me_output(
        e, node,
        me_kernel(e, &cat_kernel, ME_NO_TENSORS, (me_dtype)a->dtype, shape));
}

/** The gradients of all parts, concatenated. */
static void split_rows_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    (void)gy;
    gx[0] = me_kernel(e, &cat_kernel, ME_NO_TENSORS, me_output_dtype(node, 0),
                      node->data.shape);
}

static const me_op split_rows_op =
    ME_NODE("SplitWithSizesBackward0", split_rows_backward);

void me_split_rows(me_engine *e, me_tensor *x, uint32_t count,
                   const uint64_t *sizes, me_tensor **parts_out)
{
    me_node *node =
        me_record_wide(e, &split_rows_op, 1, (me_tensor *[]){x}, count);
    uint64_t begin = 0;
    for (uint32_t i = 0; i < count; i++) {
        me_tensor *part = narrow(e, x, 0, begin, begin + sizes[i]);
        parts_out[i] = me_output(e, node, part);
        begin += sizes[i];
    }
}

/** Each part's rows of the gradient, views of it. */
static void cat_first_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    uint64_t begin = 0;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        const uint64_t end = begin + node->wide->extents[i];
        gx[i] = narrow(e, gy[0], 0, begin, end);
        begin = end;
    }
}

static const me_op cat_first_op = ME_NODE("CatBackward0", cat_first_backward);

me_tensor *me_cat_first(me_engine *e, uint32_t count, me_tensor *const *parts)
{
    if (!me_engine_is_ok(e)) { // and so there may be fewer
        return me_none(e);
    }
    me_node *node = me_record_wide(e, &cat_first_op, count, parts, 1);
    me_shape shape = parts[0]->shape;
    shape.dim[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        shape.dim[0] = me_size_add(shape.dim[0], me_dim(parts[i], 0));
        if (node != NULL) {
            node->wide->extents[i] = me_dim(parts[i], 0);
        }
    }
    return me_output(e, node,
                     me_kernel(e, &cat_kernel, ME_NO_TENSORS,
                               (me_dtype)parts[0]->dtype, shape));
}

/** The chunks' gradients, joined in the order that they had. */
static void chunks_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    gx[0] = me_kernel_dense(e, node->op, ME_TENSORS(gy[0]));
}

static const me_op chunks_op =
    ME_OP("cat", NULL, ME_COST(STRIDED, 0, 1, 1), "SplitWithSizesBackward0",
          .backward = chunks_backward);

/** Views of the gradient, one a chunk. */
static void reorder_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    (void)node;
    gx[0] = me_alias(e, gy[0], gy[0]->shape, gy[0]->strides);
}

static const me_op reorder_op =
    ME_OP("cat", NULL, ME_COST(STRIDED, 0, 1, 1), "CatBackward0",
          .backward = reorder_backward);

me_tensor *me_reorder_rows(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_node *split = me_record1(e, &chunks_op, x);
    me_tensor *chunks =
        me_output(e, split, me_alias(e, x, x->shape, x->strides));
    me_node *node = me_record1(e, &reorder_op, chunks);
    return me_leave(
        e, frame,
        me_output(e, node, me_kernel_dense(e, &reorder_op, ME_TENSORS(x))));
}

static const me_op regenerate_gradient = {"AsStridedBackward0",
                                          .cost = ME_POINTWISE};
static const me_op regenerate_op = {.node = "AsStridedBackward0",
                                    .backward = me_gradient_backward,
                                    .gradient = &regenerate_gradient};

me_tensor *me_regenerate_view(me_engine *e, me_tensor *x)
{
    me_node *view = me_record1(e, &regenerate_op, x);
    return me_output(e, view, x);
}

static const me_op viewless_op =
    ME_NODE("MakeViewlessTensor", identity_backward);

me_tensor *me_make_viewless(me_engine *e, me_tensor *x)
{
    if (!x->is_view) {
        return x;
    }
    me_node *node = me_record1(e, &viewless_op, x);
    me_tensor *y =
        me_empty(e, "make_viewless", (me_dtype)x->dtype, ME_SHAPE(1));
    me_set_data(e, y, x);
    return me_output(e, node, y);
}
