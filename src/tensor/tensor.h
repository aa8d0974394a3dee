/**
 * @file
 * Making tensors and looking at them: births, views, and the scratch memory
 * that kernels ask PyTorch's allocator for. Nothing here is recorded on the
 * tape; operations that are live in ops/.
 *
 * Functions that return a tensor return a new variable of the running frame,
 * borrowed by the caller; after a failure of the engine its empty tensor. What
 * does not fit 64 bits or host memory fails the engine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_TENSOR_H
#define MEMEST_TENSOR_TENSOR_H

#include "tensor/engine.h"

/**
 * A new dense tensor, a variable of the running frame.
 *
 * @param op  the operation that makes it, as PyTorch names it; static
 */
me_tensor *me_empty(me_engine *e, const char *op, me_dtype dtype,
                    me_shape shape);

/** A new tensor of the shape of @p x with its order of strides, no holes. */
me_tensor *me_empty_like(me_engine *e, const char *op, const me_tensor *x);

/** As me_empty_like() in another dtype. */
me_tensor *me_empty_like_as(me_engine *e, const char *op, const me_tensor *x,
                            me_dtype dtype);

/** A new tensor whose strides are given, in elements. */
me_tensor *me_empty_strided(me_engine *e, const char *op, me_dtype dtype,
                            me_shape shape, const uint64_t *strides);

/** As me_empty(), of what an operation needs while it runs and nobody outside of
 *  it sees. */
me_tensor *me_empty_inside(me_engine *e, const char *op, me_dtype dtype,
                           me_shape shape);

/** What PyTorch's first fake tensor on the card does, by which DTensor learns
 *  what an operation that names a device makes: a real one, for a moment
 *  (_subclasses/fake_tensor.py, init_gpu_context()). Later ones do nothing. */
void me_fake_device(me_engine *e);

/** What resize_() does to a tensor that was made empty and got its size later, as
 *  the result of arange() or abs(): where operations are deterministic it is
 *  filled through a view, which begins as a tensor of one element of @p bytes
 *  (aten/native/Resize.cpp, fill_resize_deterministic_()). */
void me_fill_resized(me_engine *e, uint64_t bytes);

/** Scratch of @p bytes: a one-dimensional uint8 tensor. */
me_tensor *me_scratch(me_engine *e, const char *op, uint64_t bytes);

/** A temporary of @p bytes, freed as soon as it was allocated. */
void me_temporary(me_engine *e, const char *op, uint64_t bytes);

/** A new tensor of @p category that another holder than a frame holds. */
me_tensor *me_keep(me_engine *e, const char *op, me_category category,
                   me_dtype dtype, me_shape shape);

/** A tensor without a block, of the host's, that another holder than a frame
 *  holds. */
me_tensor *me_keep_on_host(me_engine *e, me_dtype dtype, me_shape shape);

/** A view of @p x: shares the storage. @p strides in elements. */
me_tensor *me_alias(me_engine *e, const me_tensor *x, me_shape shape,
                    const uint64_t *strides);

/** Same storage, shape and strides, unknown to the tape. */
me_tensor *me_detach(me_engine *e, const me_tensor *x);

/** `x.data = y.data`: @p x lets go of its storage and shares that of @p y. */
void me_set_data(me_engine *e, me_tensor *x, const me_tensor *y);

/** `x.untyped_storage().resize_(0)`: the block goes, and whatever shows the
 *  storage keeps showing it. */
void me_storage_free(me_engine *e, const me_tensor *x);

/** `resize_()` back to the size of @p x, which shows all of its storage: a new
 *  block. */
void me_storage_alloc(me_engine *e, const me_tensor *x, const char *op);

/** What me_storage_free() took from @p x and all that share its storage, they
 *  get back: the data of @p y, which they hold from now on. */
void me_restore_data(me_engine *e, me_tensor *x, const me_tensor *y);

/** A collective that nobody has waited for writes @p output (PyTorch's
 *  AsyncCollectiveTensor): @p input lives until the first operation on it. */
void me_await_later(me_tensor *output, const me_tensor *input);

/** wait_tensor(): the collective that writes @p x is done. */
void me_await(me_engine *e, const me_tensor *x);

/** Another stream uses the storage: its free completes late. */
void me_record_stream(me_tensor *x);

/** What the bytes of @p x are for, from now on. */
void me_categorize(me_engine *e, const me_tensor *x, me_category category);

/** The empty tensor that everything returns after a failure, and not one of
 *  its inputs: callers drop those. */
me_tensor *me_none(me_engine *e);

/** Extent of dimension @p i, from the end if negative; 0 of the empty tensor
 *  that operations return after a failure. */
static inline uint64_t me_dim(const me_tensor *x, int32_t i)
{
    const int32_t at = i < 0 ? x->shape.ndim + i : i;
    return at < 0 ? 0 : x->shape.dim[at];
}

/** Elements. */
uint64_t me_numel(const me_tensor *x);

/** Elements over the extent of the last dimension; 0 of none. */
uint64_t me_rows(const me_tensor *x);

/** Bytes of the elements (a view's own, not its storage's). */
uint64_t me_bytes(const me_tensor *x);

/** One number shown as many (Tensor.expand of a scalar)? */
bool me_tensor_is_expanded(const me_tensor *x);

/** Row-major without holes? */
bool me_tensor_is_contiguous(const me_tensor *x);

#endif /* MEMEST_TENSOR_TENSOR_H */
