/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/dtensor.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/region.h"

#include <string.h>

me_dlayout me_dlayout_of(me_dlayout layout, int32_t ndim)
{
    return layout == ME_DLAYOUT_SHARD_LAST
               ? (me_dlayout)(ME_DLAYOUT_SHARD_0 + ndim - 1)
               : layout;
}

const char *me_dlayout_name(me_dlayout layout)
{
    static const char *const names[ME_DLAYOUT_END] = {
        "none",     "Replicate", "Partial",  "Shard(-1)", "Shard(0)",
        "Shard(1)", "Shard(2)",  "Shard(3)", "Shard(4)"};
    return names[layout];
}

static uint64_t ranks_of(const me_nn *nn)
{
    return (uint64_t)nn->comm->size[ME_GROUP_TENSOR];
}

/** Those of torch.distributed._functional_collectives. */
static void tell_functional(const me_nn *nn, me_c10d_op op, const me_tensor *x,
                            const me_tensor *y)
{
    me_communicate_c10d(
        nn->e, nn->comm,
        (me_c10d_call){.op = op,
                       .group = me_mesh_group(nn->comm, ME_GROUP_TENSOR),
                       .peer = -1,
                       .input_bytes = me_storage_bytes(x),
                       .output_bytes = me_storage_bytes(y)});
}

static void tell(const me_nn *nn, me_collective kind, const me_tensor *part)
{
    me_communicate(nn->e, nn->comm,
                   (me_call){me_mesh_group(nn->comm, ME_GROUP_TENSOR), kind,
                             (me_dtype)part->dtype, me_numel(part), -1, false});
}

uint64_t me_padded_part(const me_nn *nn, uint64_t whole)
{
    return me_div_up(whole, ranks_of(nn));
}

uint64_t me_part_of(const me_nn *nn, uint64_t whole)
{
    const uint64_t part = me_padded_part(nn, whole);
    const uint64_t begin = part * (uint64_t)nn->comm->index[ME_GROUP_TENSOR];
    return begin >= whole ? 0 : me_min_u64(part, whole - begin);
}

uint64_t me_uneven_extent(const me_nn *nn, uint64_t whole)
{
    const uint64_t padded =
        me_size_mul(me_padded_part(nn, whole), ranks_of(nn));
    return padded == whole ? 0 : whole;
}

const me_dtensor *me_dtensor_of(const me_tensor *x)
{
    static const me_dtensor plain = {.layout = ME_DLAYOUT_NONE};
    return x->kind == NULL ? &plain : (const me_dtensor *)x->kind;
}

const me_dparameter *me_dparameter_of(const me_parameter *p)
{
    static const me_dparameter plain = {.tensor.layout = ME_DLAYOUT_NONE};
    return p->kind == NULL ? &plain : (const me_dparameter *)p->kind;
}

void me_lay_uneven(me_engine *e, me_tensor *x, me_dlayout layout,
                   uint64_t whole_extent)
{
    if (!me_engine_is_ok(e)) {
        return;
    }
    me_dtensor d;
    memset(&d, 0, sizeof d);
    d.kind.name = ME_KIND_DTENSOR;
    d.kind.is_distributed = layout != ME_DLAYOUT_NONE;
    d.layout = layout;
    d.whole_extent = whole_extent;
    const bool is_plain = layout == ME_DLAYOUT_NONE && whole_extent == 0;
    x->kind = is_plain ? NULL : me_kind_intern(e, &d.kind, sizeof d);
}

void me_lay(me_engine *e, me_tensor *x, me_dlayout layout)
{
    me_lay_uneven(e, x, layout, me_dtensor_of(x)->whole_extent);
}

me_tensor *me_lies_as(me_engine *e, me_tensor *y, const me_tensor *x)
{
    if (me_engine_is_ok(e)) {
        y->kind = x->kind;
    }
    return y;
}

/** A new tensor like @p x, longer or shorter along @p dim. */
static me_tensor *resized(me_engine *e, const char *op, const me_tensor *x,
                          int32_t dim, uint64_t extent)
{
    me_shape shape = x->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[dim] = extent;
    }
    return me_empty(e, op, (me_dtype)x->dtype, shape);
}

/** A collective wants its input in one piece. */
static me_tensor *contiguous(me_engine *e, me_tensor *x)
{
    return me_tensor_is_contiguous(x) || !me_engine_is_ok(e)
               ? x
               : me_empty(e, "contiguous", (me_dtype)x->dtype, x->shape);
}

/** What a gather reads: padded where other ranks have more. */
static me_tensor *padded(const me_nn *nn, me_tensor *x, int32_t dim)
{
    const uint64_t extent = me_padded_part(nn, me_dtensor_of(x)->whole_extent);
    return me_dim(x, dim) >= extent
               ? contiguous(nn->e, x)
               : resized(nn->e, "constant_pad_nd", x, dim, extent);
}

/** What it made, without what was padded: a view that keeps all of it. */
static me_tensor *unpadded(me_engine *e, me_tensor *y, const me_tensor *x,
                           int32_t dim)
{
    const uint64_t whole = me_dtensor_of(x)->whole_extent;
    if (whole != 0 && me_engine_is_ok(e)) {
        y->shape.dim[dim] = whole;
    }
    return y;
}

/** all_gather_tensor(): parts one after the other; along another dimension than
 *  the first they are put together in a second tensor. */
static me_tensor *gather(const me_nn *nn, me_tensor *x, int32_t dim,
                         bool is_async)
{
    me_engine *e = nn->e;
    me_tensor *part = padded(nn, x, dim);
    const uint64_t ranks = ranks_of(nn);
    me_tensor *y = resized(e, "all_gather_into_tensor", part, 0,
                           me_c10d_result_rows(ME_C10D_FUNCTIONAL_ALL_GATHER,
                                               me_dim(part, 0), ranks));
    tell_functional(nn, ME_C10D_FUNCTIONAL_ALL_GATHER, part, y);
    tell(nn, ME_COLLECTIVE_ALL_GATHER, part);
    if (dim == 0 && is_async && me_dtensor_of(x)->whole_extent == 0) {
        me_await_later(y, part);
    }
    if (dim != 0) {
        me_tensor *whole =
            resized(e, "cat", part, dim, me_size_mul(me_dim(part, dim), ranks));
        me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(whole));
        me_drop(e, y);
        y = whole;
    }
    if (part != x) {
        me_drop(e, part);
    }
    return unpadded(e, y, x, dim);
}

/** reduce_scatter_tensor(): along another dimension than the first the pieces
 *  are put one after the other first. */
static me_tensor *scatter_sum(const me_nn *nn, me_tensor *x, int32_t dim,
                              bool is_async)
{
    me_engine *e = nn->e;
    me_tensor *whole = contiguous(e, x);
    if (dim != 0) {
        me_tensor *pieces = me_empty(e, "cat", (me_dtype)x->dtype, x->shape);
        me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(pieces));
        if (whole != x) {
            me_drop(e, whole);
        }
        whole = pieces;
    }
    me_tensor *y = NULL;
    if (!me_region_kept(e, ME_REGION_REDUCE_SCATTER, 1, &y)) {
        y = resized(e, "reduce_scatter_tensor", x, dim,
                    me_dim(x, dim) / ranks_of(nn));
        tell_functional(nn, ME_C10D_FUNCTIONAL_REDUCE_SCATTER, whole, y);
        tell(nn, ME_COLLECTIVE_REDUCE_SCATTER, y);
        if (is_async) {
            me_await_later(y, whole);
        }
        me_region_keep(e, ME_REGION_REDUCE_SCATTER, 1, &y);
    }
    if (whole != x) {
        me_drop(e, whole);
    }
    return y;
}

me_tensor *me_all_reduce_local(const me_nn *nn, const me_tensor *x)
{
    me_tensor *y = me_empty(nn->e, "all_reduce", (me_dtype)x->dtype, x->shape);
    tell_functional(nn, ME_C10D_FUNCTIONAL_ALL_REDUCE, x, y);
    tell(nn, ME_COLLECTIVE_ALL_REDUCE, y);
    return y;
}

me_tensor *me_redistribute_local(const me_nn *nn, me_tensor *x, me_dlayout from,
                                 me_dlayout to, bool is_async)
{
    me_engine *e = nn->e;
    if (from == to || !me_engine_is_ok(e)) {
        return x;
    }
    me_await(e, x);
    const int32_t source = (int32_t)from - (int32_t)ME_DLAYOUT_SHARD_0;
    const int32_t target = (int32_t)to - (int32_t)ME_DLAYOUT_SHARD_0;
    const int32_t cut = source >= 0 ? source : target;
    if (cut >= x->shape.ndim || (from == ME_DLAYOUT_PARTIAL && target >= 0 &&
                                 x->shape.dim[target] % ranks_of(nn) != 0)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: parallelize_plan cuts dimension %d of a sum "
                       "over ranks, which %d ranks do not divide",
                       me_module_shown(e), (int)cut, (int)ranks_of(nn));
        return me_none(e);
    }
    if (source >= 0 && to == ME_DLAYOUT_REPLICATE) {
        return gather(nn, x, source, is_async);
    }
    if (from == ME_DLAYOUT_PARTIAL && target >= 0) {
        return scatter_sum(nn, x, target, is_async);
    }
    if (from == ME_DLAYOUT_PARTIAL && to == ME_DLAYOUT_REPLICATE) {
        return me_all_reduce_local(nn, x);
    }
    if (from == ME_DLAYOUT_REPLICATE && target >= 0) {
        const uint64_t whole = me_dim(x, target);
        me_tensor *y = resized(e, "clone", x, target, me_part_of(nn, whole));
        me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(y));
        me_lay_uneven(e, y, me_layout_of(y), me_uneven_extent(nn, whole));
        return y;
    }
    if (from == ME_DLAYOUT_REPLICATE && to == ME_DLAYOUT_PARTIAL) {
        return me_empty(e, "div", (me_dtype)x->dtype, x->shape);
    }
    me_engine_fail(e, ME_ERR_CONFIG,
                   "module %s: parallelize_plan goes from %s to %s, which is "
                   "not modelled",
                   me_module_shown(e), me_dlayout_name(from),
                   me_dlayout_name(to));
    return me_none(e);
}

/** What a backward redistributes: nn, from, to. */
enum {
    DTENSOR_FROM,
    DTENSOR_TO
};

/** Whole gradients stay whole where a summand came in: the sum of whole ones
 *  over the ranks is in the collective's factor. */
static void redistribute(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx, bool is_async)
{
    const me_dlayout from = (me_dlayout)node->data.n[DTENSOR_FROM];
    const me_dlayout to = (me_dlayout)node->data.n[DTENSOR_TO];
    const int32_t cut = (int32_t)from - (int32_t)ME_DLAYOUT_SHARD_0;
    if (cut >= 0 && cut < node->data.shape.ndim) {
        me_lay_uneven(
            e, gy[0], me_layout_of(gy[0]),
            me_uneven_extent(node->data.context, node->data.shape.dim[cut]));
    }
    gx[0] = me_redistribute_local(
        node->data.context, gy[0], from,
        to == ME_DLAYOUT_PARTIAL ? ME_DLAYOUT_REPLICATE : to, is_async);
}

static void from_local_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    redistribute(e, node, gy, gx, false);
}

static void redistribute_backward(me_engine *e, me_node *node,
                                  me_tensor *const *gy, me_tensor **gx)
{
    redistribute(e, node, gy, gx, true);
}

static void to_local_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

static const me_op from_local_op =
    ME_NODE("_FromTorchTensorBackward", from_local_backward);
static const me_op redistribute_op =
    ME_NODE("RedistributeBackward", redistribute_backward);
static const me_op to_local_op =
    ME_NODE("_ToTorchTensorBackward", to_local_backward);

static void remember(const me_nn *nn, me_node *node, me_dlayout from,
                     me_dlayout to)
{
    if (node != NULL) {
        node->data.context = nn;
        node->data.n[DTENSOR_FROM] = (uint64_t)from;
        node->data.n[DTENSOR_TO] = (uint64_t)to;
    }
}

/** An alias that keeps no base: a wrapper around the same local tensor. */
static me_tensor *wrap(me_engine *e, const me_tensor *x, me_dlayout layout)
{
    me_tensor *y = me_detach(e, x);
    if (me_engine_is_ok(e)) {
        y->is_view = false;
        me_lay(e, y, layout);
    }
    return y;
}

me_tensor *me_from_local(const me_nn *nn, me_tensor *x, me_dlayout layout,
                         me_dlayout gradient)
{
    me_engine *e = nn->e;
    me_node *node = me_record_view(e, &from_local_op, x);
    remember(nn, node, me_dlayout_of(gradient, x->shape.ndim), layout);
    if (node != NULL) {
        node->is_dtensor = true;
    }
    return me_output(e, node, wrap(e, x, layout));
}

me_tensor *me_redistribute(const me_nn *nn, me_tensor *x, me_dlayout layout,
                           me_dlayout gradient)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e) || me_layout_of(x) == layout) {
        return x;
    }
    const me_dlayout from = me_layout_of(x);
    me_node *node = me_record_view(e, &redistribute_op, x);
    remember(nn, node, me_dlayout_of(gradient, x->shape.ndim), from);
    if (node != NULL && from >= ME_DLAYOUT_SHARD_0) { // of a part: not asked
        node->data.shape = ME_SCALAR;
    }
    me_tensor *y = me_redistribute_local(nn, x, from, layout, true);
    me_lay(e, y, layout);
    return me_output(e, node, y);
}

me_tensor *me_to_local(const me_nn *nn, me_tensor *x)
{
    me_engine *e = nn->e;
    me_node *node = me_record_view(e, &to_local_op, x);
    if (node != NULL) {
        node->is_dtensor = false;
    }
    return me_output(e, node, wrap(e, x, ME_DLAYOUT_NONE));
}
