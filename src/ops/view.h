/**
 * @file
 * Operations that make views: no memory, but nodes on the tape. Those that copy
 * say so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_VIEW_H
#define MEMEST_OPS_VIEW_H

#include "tensor/tensor.h"

/** `x.view(shape)`; a failure of the engine if the strides do not allow it. */
me_tensor *me_view(me_engine *e, me_tensor *x, me_shape shape);

/** As me_view(), of a tensor that nobody else sees: PyTorch does not count the
 *  result as a view. */
me_tensor *me_unsafe_view(me_engine *e, me_tensor *x, me_shape shape);

/** `x.reshape(shape)`: a view, or a copy where the strides do not allow one. */
me_tensor *me_reshape(me_engine *e, me_tensor *x, me_shape shape);

/** `x.transpose(a, b)`; negative dimensions count from the end. */
me_tensor *me_transpose(me_engine *e, me_tensor *x, int32_t a, int32_t b);

/** `x.permute(order…)` of a four-dimensional tensor. */
me_tensor *me_permute(me_engine *e, me_tensor *x, const int32_t order[4]);

/** `x.contiguous()`: @p x itself if it is, else a row-major copy. */
me_tensor *me_contiguous(me_engine *e, me_tensor *x);

/** `x.clone()`: a copy with its order of strides. */
me_tensor *me_clone(me_engine *e, me_tensor *x);

/** `torch.split(x, sizes, dim=-1)`: @p count views of the last dimension, which
 *  @p sizes, in elements, add up to. */
void me_split_last(me_engine *e, me_tensor *x, uint32_t count,
                   const uint64_t *sizes, me_tensor **parts_out);

/** `torch.chunk(x, count, dim=0)`: @p count equal views, one is a node of the
 *  tape as well; @p count divides the rows. */
void me_chunk_first(me_engine *e, me_tensor *x, uint32_t count,
                    me_tensor **parts_out);

/** Elements [begin, end) of dimension @p dim, a view; negative dimensions count
 *  from the end. */
me_tensor *me_slice(me_engine *e, me_tensor *x, int32_t dim, uint64_t begin,
                    uint64_t end);
/** `x[:end]`, an index by one slice alone, which autograd sees even where it is
 *  all of @p x. */
me_tensor *me_first_rows(me_engine *e, me_tensor *x, uint64_t end);

/** `x[..., first::2]`: every second column, a view. */
me_tensor *me_every_second(me_engine *e, me_tensor *x, uint64_t first);

/** `x.expand(shape)`: dimensions of one element are shown as often as @p shape
 *  says; the gradient is summed. */
me_tensor *me_expand(me_engine *e, me_tensor *x, me_shape shape);

/** `torch.cat((a, b), dim=-1)`: a copy. */
me_tensor *me_cat_last(me_engine *e, me_tensor *a, me_tensor *b);

/** `torch.split(x, sizes)`: @p count views of rows, which @p sizes add up to; at
 *  most ME_MAX_LIST. */
void me_split_rows(me_engine *e, me_tensor *x, uint32_t count,
                   const uint64_t *sizes, me_tensor **parts_out);

/** `torch.cat(parts, dim=0)`: rows of @p count tensors, at most ME_MAX_LIST,
 * copied. */
me_tensor *me_cat_first(me_engine *e, uint32_t count, me_tensor *const *parts);

/** `torch.cat` of all the parts of `torch.split(x)`, in another order: a copy,
 *  as is its gradient. */
me_tensor *me_reorder_rows(me_engine *e, me_tensor *x);

/** A view that an operation wrote to has a node made anew, whose gradient is a
 *  copy. @return @p x */
me_tensor *me_regenerate_view(me_engine *e, me_tensor *x);

/** Megatron's make_viewless_tensor(): hides that @p x is a view. */
me_tensor *me_make_viewless(me_engine *e, me_tensor *x);

#endif /* MEMEST_OPS_VIEW_H */
