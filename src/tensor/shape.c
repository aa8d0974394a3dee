/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/shape.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t me_shape_numel(const me_shape *shape)
{
    uint64_t numel = 1;
    for (int32_t i = 0; i < shape->ndim; i++) {
        numel = me_size_mul(numel, shape->dim[i]);
    }
    return numel;
}

bool me_shape_equal(const me_shape *a, const me_shape *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof a->dim[0]) == 0;
}

me_shape me_shape_with_last(const me_shape *shape, uint64_t last)
{
    me_shape other = *shape;
    if (other.ndim > 0) {
        other.dim[other.ndim - 1] = last;
    }
    return other;
}

void me_strides_contiguous(const me_shape *shape, uint64_t *strides_out)
{
    uint64_t stride = 1;
    for (int32_t i = shape->ndim - 1; i >= 0; i--) {
        strides_out[i] = stride;
        stride = me_size_mul(stride, me_max_u64(shape->dim[i], 1));
    }
}

/** Dimensions ordered from the largest stride to the smallest; stable. */
static void order_by_stride(const me_shape *shape, const uint64_t *strides,
                            int32_t *order_out)
{
    for (int32_t i = 0; i < shape->ndim; i++) {
        int32_t at = i;
        while (at > 0 && strides[order_out[at - 1]] < strides[i]) {
            order_out[at] = order_out[at - 1];
            at--;
        }
        order_out[at] = i;
    }
}

/** Does dimension @p a lie further out than @p b (1), further in (-1), or does
 *  nothing say so (0), as with a stride of 0? */
static int is_further_out(const me_shape *shape, const uint64_t *strides,
                          int32_t a, int32_t b)
{
    if (strides[a] == 0 || strides[b] == 0) {
        return 0;
    }
    if (strides[a] != strides[b]) {
        return strides[a] > strides[b] ? 1 : -1;
    }
    return shape->dim[a] > shape->dim[b] ? 1 : 0;
}

void me_strides_like(const me_shape *shape, const uint64_t *strides,
                     uint64_t *strides_out)
{
    int32_t order[ME_MAX_DIMS] = {0}; // the innermost first
    for (int32_t i = 0; i < shape->ndim; i++) {
        order[i] = shape->ndim - 1 - i;
        int32_t own = i;
        for (int32_t other = i - 1; other >= 0; other--) {
            const int further =
                is_further_out(shape, strides, order[other], order[own]);
            if (further < 0) {
                break;
            }
            if (further > 0) {
                const int32_t outer = order[other];
                order[other] = order[own];
                order[own] = outer;
                own = other;
            }
        }
    }
    uint64_t stride = 1;
    for (int32_t i = 0; i < shape->ndim; i++) {
        strides_out[order[i]] = stride;
        stride = me_size_mul(stride, me_max_u64(shape->dim[order[i]], 1));
    }
}

bool me_is_contiguous(const me_shape *shape, const uint64_t *strides)
{
    uint64_t stride = 1;
    for (int32_t i = shape->ndim - 1; i >= 0; i--) {
        if (shape->dim[i] == 1) {
            continue;
        }
        if (strides[i] != stride) {
            return false;
        }
        stride = me_size_mul(stride, shape->dim[i]);
    }
    return true;
}

bool me_is_dense(const me_shape *shape, const uint64_t *strides)
{
    me_shape ordered = {.ndim = 0};
    uint64_t sorted[ME_MAX_DIMS] = {0};
    int32_t order[ME_MAX_DIMS] = {0};
    order_by_stride(shape, strides, order);
    for (int32_t i = 0; i < shape->ndim; i++) {
        if (shape->dim[order[i]] != 1) {
            sorted[ordered.ndim] = strides[order[i]];
            ordered.dim[ordered.ndim++] = shape->dim[order[i]];
        }
    }
    return me_is_contiguous(&ordered, sorted);
}

bool me_strides_reshape(const me_shape *from, const uint64_t *strides,
                        const me_shape *to, uint64_t *strides_out)
{
    if (me_shape_numel(from) == 0) {
        me_strides_contiguous(to, strides_out);
        return me_shape_numel(to) == 0;
    }
    // Runs of old dimensions that are contiguous among themselves must each
    // be a product of new dimensions.
    int32_t view = to->ndim - 1;
    uint64_t chunk_stride = from->ndim > 0 ? strides[from->ndim - 1] : 1;
    uint64_t old_numel = 1;
    uint64_t new_numel = 1;
    for (int32_t i = from->ndim - 1; i >= 0; i--) {
        old_numel = me_size_mul(old_numel, from->dim[i]);
        const bool ends_run =
            i == 0 || (from->dim[i - 1] != 1 &&
                       strides[i - 1] != me_size_mul(old_numel, chunk_stride));
        if (!ends_run) {
            continue;
        }
        while (view >= 0 && (new_numel < old_numel || to->dim[view] == 1)) {
            strides_out[view] = me_size_mul(new_numel, chunk_stride);
            new_numel = me_size_mul(new_numel, to->dim[view]);
            view--;
        }
        if (new_numel != old_numel) {
            return false;
        }
        if (i > 0) {
            chunk_stride = strides[i - 1];
            new_numel = 1;
            old_numel = 1;
        }
    }
    for (; view >= 0; view--) {
        strides_out[view] = 1;
    }
    return true;
}

bool me_shape_infer(const int64_t *sizes, uint32_t n, uint64_t numel,
                    me_shape *shape_out)
{
    me_shape shape = {.ndim = (int32_t)n};
    uint64_t known = 1;
    uint64_t *rest = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (sizes[i] < 0) {
            rest = &shape.dim[i];
        } else {
            shape.dim[i] = (uint64_t)sizes[i];
            known = me_size_mul(known, shape.dim[i]);
        }
    }
    if (rest != NULL && known != 0 && numel % known == 0) {
        *rest = numel / known;
        known = numel;
    }
    *shape_out = shape;
    return known == numel;
}

/** Extent @p i from the end; 1 of a dimension that is not there. */
static uint64_t extent(const me_shape *shape, int32_t i)
{
    return i < shape->ndim ? shape->dim[shape->ndim - 1 - i] : 1;
}

bool me_shape_broadcast(const me_shape *a, const me_shape *b,
                        me_shape *shape_out)
{
    me_shape shape = {.ndim = a->ndim > b->ndim ? a->ndim : b->ndim};
    for (int32_t i = 0; i < shape.ndim; i++) {
        const uint64_t x = extent(a, i);
        const uint64_t y = extent(b, i);
        if (x != y && x != 1 && y != 1) {
            return false;
        }
        shape.dim[shape.ndim - 1 - i] = x == 1 ? y : x;
    }
    *shape_out = shape;
    return true;
}

/** Strides along the dimensions of @p shape; 0 along what is broadcast. */
static void spread(const me_shape *shape, const me_extents *x,
                   uint64_t *strides_out)
{
    for (int32_t i = 0; i < shape->ndim; i++) {
        const int32_t at = i - (shape->ndim - x->shape->ndim);
        const bool is_there = at >= 0 && x->shape->dim[at] == shape->dim[i];
        strides_out[i] = is_there ? x->strides[at] : 0;
    }
}

/** Does dimension @p outer, which is taken for the slower one, move faster than
 *  @p inner? 1: yes; -1: no; 0: strides do not say. */
static int is_swapped(const me_shape *shape, uint64_t strides[2][ME_MAX_DIMS],
                      int32_t inner, int32_t outer)
{
    for (int k = 0; k < 2; k++) {
        const uint64_t x = strides[k][inner];
        const uint64_t y = strides[k][outer];
        if (x == 0 || y == 0) {
            continue;
        }
        if (x != y) {
            return x < y ? -1 : 1;
        }
        if (shape->dim[inner] > shape->dim[outer]) {
            return 1;
        }
    }
    return 0;
}

/** Dimensions from the fastest to the slowest, the last first where nothing
 *  says otherwise. */
static void order_dimensions(const me_shape *shape,
                             uint64_t strides[2][ME_MAX_DIMS],
                             int32_t *order_out)
{
    for (int32_t i = 0; i < shape->ndim; i++) {
        order_out[i] = shape->ndim - 1 - i;
    }
    for (int32_t i = 1; i < shape->ndim; i++) {
        int32_t at = i;
        for (int32_t k = i - 1; k >= 0; k--) {
            const int swapped =
                is_swapped(shape, strides, order_out[k], order_out[at]);
            if (swapped < 0) {
                break;
            }
            if (swapped > 0) {
                const int32_t other = order_out[k];
                order_out[k] = order_out[at];
                order_out[at] = other;
                at = k;
            }
        }
    }
}

void me_strides_broadcast(const me_shape *shape, const me_extents *a,
                          const me_extents *b, uint64_t *strides_out)
{
    uint64_t strides[2][ME_MAX_DIMS] = {{0}};
    int32_t order[ME_MAX_DIMS] = {0};
    if (me_shape_equal(a->shape, b->shape) &&
        me_is_contiguous(a->shape, a->strides) &&
        me_is_contiguous(b->shape, b->strides)) {
        me_strides_contiguous(shape, strides_out);
        return;
    }
    spread(shape, a, strides[0]);
    spread(shape, b, strides[1]);
    order_dimensions(shape, strides, order);
    uint64_t stride = 1;
    for (int32_t i = 0; i < shape->ndim; i++) {
        strides_out[order[i]] = stride;
        stride = me_size_mul(stride, me_max_u64(shape->dim[order[i]], 1));
    }
}

void me_shape_text(const me_shape *shape, char text_out[ME_SHAPE_TEXT])
{
    int at = snprintf(text_out, ME_SHAPE_TEXT, "(");
    for (int32_t i = 0; i < shape->ndim; i++) {
        at += snprintf(text_out + at, (size_t)(ME_SHAPE_TEXT - at),
                       "%s%" PRIu64, i == 0 ? "" : ", ", shape->dim[i]);
    }
    (void)snprintf(text_out + at, (size_t)(ME_SHAPE_TEXT - at), "%s",
                   shape->ndim == 1 ? ",)" : ")");
}
