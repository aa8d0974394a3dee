/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/tensor.h"

#include "base/assert.h"
#include "base/size.h"
#include "tensor/engine_private.h"
#include "tensor/script.h"

#include <stddef.h>
#include <string.h>

me_tensor *me_tensor_new(me_engine *e)
{
    me_tensor *x = e->free_tensors;
    if (x != NULL) {
        e->free_tensors = x->grad;
        memset(x, 0, offsetof(me_tensor, shape));
    } else {
        x = me_arena_alloc(e->arena, 1, sizeof *x);
    }
    if (x == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a tensor");
        return NULL;
    }
    x->refs = 1;
    return x;
}

me_tensor *me_tensor_adopt(me_engine *e, const me_tensor *like,
                           const me_storage *storage, uint32_t block)
{
    me_tensor *x = me_tensor_new(e);
    if (x != NULL) {
        x->dtype = like->dtype;
        x->requires_grad = like->requires_grad;
        x->shape = like->shape;
        memcpy(x->strides, like->strides, sizeof x->strides);
        x->storage = me_storage_adopt(e, storage, block);
    }
    return x;
}

me_tensor *me_none(me_engine *e)
{
    return &e->none;
}

/** A new variable of the running frame; none after a failure. */
static me_tensor *new_variable(me_engine *e, me_dtype dtype,
                               const me_shape *shape)
{
    if (!me_engine_is_ok(e)) {
        return &e->none;
    }
    me_tensor *x = me_tensor_new(e);
    if (x == NULL) {
        return &e->none;
    }
    x->dtype = (uint8_t)dtype;
    x->shape = *shape;
    me_frame_push(e, x);
    me_release(e, x); // the frame's reference is the only one
    return x;
}

static me_tensor *new_dense(me_engine *e, const char *op, me_dtype dtype,
                            const me_shape *shape, const uint64_t *strides)
{
    me_tensor *x = new_variable(e, dtype, shape);
    if (x == &e->none) {
        return x;
    }
    memcpy(x->strides, strides, sizeof x->strides);
    const uint64_t bytes =
        me_size_mul(me_shape_numel(shape), me_dtype_bytes(dtype));
    if (bytes > 0) {
        x->storage = me_storage_new(e, op, bytes);
    }
    return x;
}

me_tensor *me_empty(me_engine *e, const char *op, me_dtype dtype,
                    me_shape shape)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    me_strides_contiguous(&shape, strides);
    return new_dense(e, op, dtype, &shape, strides);
}

me_tensor *me_empty_like_as(me_engine *e, const char *op, const me_tensor *x,
                            me_dtype dtype)
{
    uint64_t strides[ME_MAX_DIMS] = {0};
    me_strides_like(&x->shape, x->strides, strides);
    return new_dense(e, op, dtype, &x->shape, strides);
}

me_tensor *me_empty_like(me_engine *e, const char *op, const me_tensor *x)
{
    return me_empty_like_as(e, op, x, (me_dtype)x->dtype);
}

me_tensor *me_empty_strided(me_engine *e, const char *op, me_dtype dtype,
                            me_shape shape, const uint64_t *strides)
{
    return new_dense(e, op, dtype, &shape, strides);
}

me_tensor *me_empty_inside(me_engine *e, const char *op, me_dtype dtype,
                           me_shape shape)
{
    e->is_scratch = true;
    me_tensor *x = me_empty(e, op, dtype, shape);
    e->is_scratch = false;
    return x;
}

me_tensor *me_scratch(me_engine *e, const char *op, uint64_t bytes)
{
    return me_empty_inside(e, op, ME_DTYPE_UINT8, ME_SHAPE(bytes));
}

void me_temporary(me_engine *e, const char *op, uint64_t bytes)
{
    const me_frame frame = me_enter(e);
    me_drop(e, me_scratch(e, op, bytes));
    me_leave(e, frame, NULL);
}

void me_fill_resized(me_engine *e, uint64_t bytes)
{
    if (me_is_deterministic(e)) {
        me_temporary(e, "fill_resize_deterministic", bytes);
    }
}

me_tensor *me_keep(me_engine *e, const char *op, me_category category,
                   me_dtype dtype, me_shape shape)
{
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, category);
    me_tensor *x = me_retain(me_empty(e, op, dtype, shape));
    me_category_set(e, before);
    me_leave(e, frame, NULL);
    return x;
}

me_tensor *me_keep_on_host(me_engine *e, me_dtype dtype, me_shape shape)
{
    const me_frame frame = me_enter(e);
    me_tensor *x = me_retain(new_variable(e, dtype, &shape));
    if (me_engine_is_ok(e)) {
        memset(x->strides, 0, sizeof x->strides);
        me_strides_contiguous(&shape, x->strides);
    }
    me_leave(e, frame, NULL);
    return x;
}

me_tensor *me_alias(me_engine *e, const me_tensor *x, me_shape shape,
                    const uint64_t *strides)
{
    me_tensor *view = new_variable(e, (me_dtype)x->dtype, &shape);
    if (view == &e->none) {
        return view;
    }
    memset(view->strides, 0, sizeof view->strides);
    memcpy(view->strides, strides, (size_t)shape.ndim * sizeof strides[0]);
    view->storage = x->storage;
    view->is_view = true;
    me_storage_retain(view->storage);
    return view;
}

me_tensor *me_detach(me_engine *e, const me_tensor *x)
{
    return me_alias(e, x, x->shape, x->strides);
}

void me_set_data(me_engine *e, me_tensor *x, const me_tensor *y)
{
    if (!me_engine_is_ok(e)) {
        return;
    }
    me_storage *old = x->storage;
    me_storage_retain(y->storage);
    x->storage = y->storage;
    x->shape = y->shape;
    x->dtype = y->dtype;
    memcpy(x->strides, y->strides, sizeof x->strides);
    me_storage_release(e, old);
}

void me_record_stream(me_tensor *x)
{
    if (x->storage != NULL) {
        x->storage->is_late = true;
    }
}

void me_await_later(me_tensor *output, const me_tensor *input)
{
    if (output->storage != NULL && input->storage != NULL) {
        me_storage_retain(input->storage);
        output->storage->awaited = input->storage;
    }
}

void me_fake_device(me_engine *e)
{
    if (!e->has_fake_device) {
        e->has_fake_device = true;
        me_drop(e, me_empty_inside(e, "empty", ME_DTYPE_FLOAT32, ME_SCALAR));
    }
}

void me_await(me_engine *e, const me_tensor *x)
{
    me_storage_await(e, x->storage);
}

void me_categorize(me_engine *e, const me_tensor *x, me_category category)
{
    me_storage *storage = x->storage;
    if (storage == NULL || storage->is_empty ||
        storage->category == (uint8_t)category) {
        return;
    }
    me_event event = {
        .kind = ME_EVENT_RECATEGORIZE,
        .category = (uint8_t)category,
        .old_category = storage->category,
        .stream = storage->stream,
        .block = storage->block,
        .bytes = storage->bytes,
    };
    storage->category = (uint8_t)category;
    if (storage->mempool != ME_MEMPOOL_REPLAY) {
        me_emit(e, &event);
    }
}

uint64_t me_numel(const me_tensor *x)
{
    return me_shape_numel(&x->shape);
}

uint64_t me_rows(const me_tensor *x)
{
    const uint64_t width = me_dim(x, -1);
    return width == 0 ? 0 : me_numel(x) / width;
}

uint64_t me_bytes(const me_tensor *x)
{
    return me_size_mul(me_numel(x), me_dtype_bytes((me_dtype)x->dtype));
}

bool me_tensor_is_expanded(const me_tensor *x)
{
    uint64_t strides = 0;
    for (int32_t i = 0; i < x->shape.ndim; i++) {
        strides |= x->shape.dim[i] == 1 ? 0 : x->strides[i];
    }
    return strides == 0 && me_numel(x) > 1;
}

bool me_tensor_is_contiguous(const me_tensor *x)
{
    return me_is_contiguous(&x->shape, x->strides);
}
