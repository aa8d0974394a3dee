/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/shape.h"

#include "base/size.h"

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

void me_strides_like(const me_shape *shape, const uint64_t *strides,
                     uint64_t *strides_out)
{
    int32_t order[ME_MAX_DIMS] = {0};
    order_by_stride(shape, strides, order);
    uint64_t stride = 1;
    for (int32_t i = shape->ndim - 1; i >= 0; i--) {
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
    /* Runs of old dimensions that are contiguous among themselves must each
     * be a product of new dimensions. */
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
