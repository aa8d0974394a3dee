/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/distribute.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/torch/dtensor.h"

#include <inttypes.h>

static uint64_t ranks_of(const me_nn *nn)
{
    return (uint64_t)nn->comm->size[ME_GROUP_TENSOR];
}

/** What the first rank scatters: pieces that are copies, or views of the whole
 *  tensor, each of which has all of its storage. */
static uint64_t scattered_bytes(const me_nn *nn, const me_parameter *p,
                                me_tensor *const *pieces)
{
    const uint64_t whole =
        me_size_mul(me_size_mul(me_dparameter_of(p)->whole[0],
                                me_dparameter_of(p)->whole[1]),
                    me_dtype_bytes(p->dtype));
    uint64_t bytes = 0;
    for (uint64_t i = 0; pieces != NULL && i < ranks_of(nn); i++) {
        bytes = me_size_add(
            bytes, pieces[i] == NULL ? whole : me_storage_bytes(pieces[i]));
    }
    return bytes;
}

/** scatter() of pieces from the first rank, which copies its own, to @p part of
 *  each. */
static void tell_scatter(const me_nn *nn, const me_parameter *p,
                         me_tensor *const *pieces, const me_tensor *part)
{
    const me_group_kind group = me_mesh_group(nn->comm, ME_GROUP_TENSOR);
    const int32_t index = nn->comm->index[group];
    const uint64_t numel = me_numel(part);
    me_communicate_c10d(
        nn->e, nn->comm,
        (me_c10d_call){.op = ME_C10D_SCATTER_,
                       .group = group,
                       .peer = 0,
                       .input_bytes =
                           index == 0 ? scattered_bytes(nn, p, pieces) : 0,
                       .output_bytes = me_storage_bytes(part)});
    me_communicate_group(nn->e, nn->comm, true);
    for (int32_t r = 1; r < nn->comm->size[group]; r++) {
        const bool is_root = index == 0;
        if (is_root || index == r) {
            me_communicate(
                nn->e, nn->comm,
                (me_call){group,
                          is_root ? ME_COLLECTIVE_SEND : ME_COLLECTIVE_RECV,
                          p->dtype, numel, is_root ? r : 0, false});
        }
    }
    me_communicate_group(nn->e, nn->comm, false);
}

/** broadcast() of what is whole on each rank, in place. */
static void tell_broadcast(const me_nn *nn, const me_parameter *p)
{
    if (p->tensor == NULL) { // on the meta device
        return;
    }
    me_communicate_c10d(
        nn->e, nn->comm,
        (me_c10d_call){.op = ME_C10D_BROADCAST_,
                       .group = me_mesh_group(nn->comm, ME_GROUP_TENSOR),
                       .peer = 0,
                       .input_bytes = me_storage_bytes(p->tensor)});
}

/** The pieces that scatter() sends: copies, where they do not lie in one piece
 *  or are padded to @p shape; NULL where none is made. @return to be freed by
 *  drop_pieces() */
static me_tensor **make_pieces(const me_nn *nn, const me_parameter *p,
                               int32_t dim, me_shape shape)
{
    const uint64_t extent = shape.dim[dim];
    me_tensor **pieces = me_alloc(ranks_of(nn), sizeof *pieces, "nn.pieces");
    if (pieces == NULL) {
        me_engine_fail(nn->e, ME_ERR_NOMEM, "no host memory for a scatter");
        return NULL;
    }
    for (uint64_t i = 0; i < ranks_of(nn); i++) {
        if (dim != 0 || (i + 1) * extent > me_dparameter_of(p)->whole[dim]) {
            pieces[i] = me_empty(nn->e, "contiguous", p->dtype, shape);
        }
    }
    return pieces;
}

/** A list's items go from its end. */
static void drop_pieces(const me_nn *nn, me_tensor **pieces)
{
    for (uint64_t i = ranks_of(nn); pieces != NULL && i > 0; i--) {
        if (pieces[i - 1] != NULL) {
            me_drop(nn->e, pieces[i - 1]);
        }
    }
    me_free(pieces);
}

/** This rank's part of a parameter, received from the first rank; of one that
 *  was padded the memory stays. @return the caller's */
static me_tensor *receive_part(const me_nn *nn, const me_parameter *p,
                               int32_t dim)
{
    me_engine *e = nn->e;
    me_shape shape = p->shape;
    shape.dim[dim] = me_padded_part(nn, me_dparameter_of(p)->whole[dim]);
    const bool is_padded = shape.dim[dim] != p->shape.dim[dim];
    const me_category category = me_category_set(e, ME_CATEGORY_PARAMETER);
    const me_frame frame = me_enter(e);
    me_tensor **pieces = make_pieces(nn, p, dim, shape);
    me_tensor *part = me_empty(e, p->name, p->dtype, shape);
    tell_scatter(nn, p, pieces, part);
    if (is_padded && dim != 0) {
        part = me_empty(e, p->name, p->dtype, p->shape);
    }
    me_retain(part);
    drop_pieces(nn, pieces);
    me_leave(e, frame, NULL);
    me_category_set(e, category);
    if (me_engine_is_ok(e)) {
        part->shape = p->shape;
        part->requires_grad = true;
    }
    return part;
}

/** distribute_tensor() with Shard(dim). @return the whole one, the caller's */
static me_tensor *shard(const me_nn *nn, me_parameter *p, me_dparameter *d,
                        int32_t dim)
{
    me_engine *e = nn->e;
    const uint64_t part = me_part_of(nn, d->whole[dim]);
    if (part == 0) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "parallelize_plan: dimension %d of %s, which is %" PRIu64
                       ", leaves some of parallel.tensor = %" PRIu64
                       " ranks without a part",
                       (int)dim, p->name, d->whole[dim], ranks_of(nn));
        return NULL;
    }
    me_module_discount_parameter(e, p->module, p->numel,
                                 p->numel * me_dtype_bytes(p->dtype));
    me_tensor *whole = p->tensor;
    p->numel = p->numel / d->whole[dim] * part;
    p->shape.dim[dim] = part;
    d->is_uneven = me_uneven_extent(nn, d->whole[dim]) != 0;
    me_module_count_parameter(e, p->module, p->numel,
                              p->numel * me_dtype_bytes(p->dtype));
    if (whole == NULL) { // on the meta device, where nothing is scattered
        return NULL;
    }
    p->tensor = receive_part(nn, p, dim);
    if (me_engine_is_ok(e)) {
        p->tensor->parameter = p;
    }
    return whole;
}

/** A tied parameter's second module makes a part of its own of the whole one,
 *  until it is tied again; @p is_owner: to this module's part. */
static void distribute_again(const me_nn *nn, me_parameter *p,
                             me_dlayout layout, bool is_owner)
{
    me_engine *e = nn->e;
    if (me_dparameter_of(p)->tensor.layout != layout ||
        layout < ME_DLAYOUT_SHARD_0) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "parallelize_plan: modules with tied weights cut them "
                       "differently, %s and %s, which is not modelled",
                       me_dlayout_name(me_dparameter_of(p)->tensor.layout),
                       me_dlayout_name(layout));
        return;
    }
    me_tensor *part =
        receive_part(nn, p, (int32_t)layout - (int32_t)ME_DLAYOUT_SHARD_0);
    me_release(e, p->spare);
    p->spare = part;
    if (is_owner && me_engine_is_ok(e)) {
        p->spare = p->tensor;
        p->tensor = part;
        part->parameter = p;
        part->kind = p->kind;
        p->spare->parameter = NULL;
    }
}

me_tensor *me_distribute(const me_nn *nn, me_parameter *p, me_dlayout layout,
                         me_dlayout gradient, bool is_owner)
{
    if (p == NULL || !me_engine_is_ok(nn->e)) {
        return NULL;
    }
    if (p->kind != NULL) {
        if (p->spare != NULL) {
            distribute_again(nn, p, layout, is_owner);
        }
        return NULL;
    }
    me_dparameter *d = me_engine_alloc(nn->e, 1, sizeof *d);
    if (d == NULL) {
        return NULL;
    }
    *d = (me_dparameter){
        .tensor = {.kind = {.name = ME_KIND_DTENSOR, .is_distributed = true},
                   .layout = layout},
        .gradient = gradient,
        .whole = {p->shape.dim[0], p->shape.ndim > 1 ? p->shape.dim[1] : 1},
    };
    p->kind = &d->tensor.kind;
    me_tensor *whole = NULL;
    if (layout >= ME_DLAYOUT_SHARD_0) {
        whole = shard(nn, p, d, (int32_t)layout - (int32_t)ME_DLAYOUT_SHARD_0);
    } else if (gradient == ME_DLAYOUT_REPLICATE) { // no DTensor.from_local()
        tell_broadcast(nn, p);
    }
    if (p->tensor != NULL && me_engine_is_ok(nn->e)) {
        p->tensor->kind = p->kind;
    }
    if (p->is_tied && layout >= ME_DLAYOUT_SHARD_0) { // its other module has it
        d->gradient = layout; // of the sum of both modules'
        p->spare = whole;
        return NULL;
    }
    return whole;
}

void me_distribute_end(const me_nn *nn)
{
    for (uint32_t i = 0; i < nn->parameters->count; i++) {
        me_parameter *p = nn->parameters->parameters[i];
        if (p->spare != NULL && me_engine_is_ok(nn->e) &&
            !me_shape_equal(&p->spare->shape, &p->shape)) {
            me_engine_fail(nn->e, ME_ERR_CONFIG,
                           "parallelize_plan names one of two modules with "
                           "tied weights; it needs both");
        }
        me_clear(nn->e, &p->spare);
    }
}
