/**
 * @file
 * Picking and placing by index: what routes tokens to experts
 * (aten/native/cuda/TensorTopK.cpp, ScatterGatherKernel.cu, Indexing.cu,
 * derivatives.yaml).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_INDEX_H
#define MEMEST_OPS_INDEX_H

#include "tensor/autograd.h"

/** A backward: zeros into which what arrives is scattered along the last of two
 *  dimensions, by the indices that were saved first. Where operations are
 *  deterministic it is put at pairs of indices (_scatter_via_index_put()). */
void me_scatter_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx);

/** `torch.topk(x, k, dim=-1)`: (…, m) to values (…, k) and indices (…, k)
 *  int64, which it saves. */
me_tensor *me_topk(me_engine *e, me_tensor *x, uint64_t k,
                   me_tensor **indices_out);

/** `torch.topk(x, k, dim=0)`: (n, m) to values (k, m) and indices. */
me_tensor *me_topk_rows(me_engine *e, me_tensor *x, uint64_t k,
                        me_tensor **indices_out);

/** `y.index_put_((rows[:, None], columns), values)` where operations are
 *  deterministic: @p y itself, a result from now on; (n) and (n, k) to (n, m).
 *  Saves both indices. */
me_tensor *me_index_put(me_engine *e, me_tensor *y, me_tensor *rows,
                        me_tensor *columns, me_tensor *values);

/** `torch.zeros_like(x).scatter(1, index, values)`: (n, m), of the dtype of @p
 *  x; saves the indices. */
me_tensor *me_scatter_into_zeros(me_engine *e, const me_tensor *x,
                                 me_tensor *index, me_tensor *values);

/** `torch.zeros_like(x).int().scatter(1, index, 1).bool()`: (n, m) flags, off
 *  the tape. */
me_tensor *me_scatter_flags(me_engine *e, const me_tensor *x);

/** `torch.zeros_like(x).scatter(0, index, 1).bool()`: as me_scatter_flags()
 *  without a step over integers. */
me_tensor *me_scatter_flags_as(me_engine *e, const me_tensor *x);

/** `x.index_select(0, index)`: rows; saves the indices. */
me_tensor *me_index_select(me_engine *e, me_tensor *x, me_tensor *index);

/** The same of @p extent chunks along @p dim, off the tape. */
me_tensor *me_select_chunks(me_engine *e, const me_tensor *x, int32_t dim,
                            uint64_t extent);

/** `x[index]` of one dimension; saves the indices. Its gradient is accumulated
 *  in the order of sorted indices. */
me_tensor *me_index(me_engine *e, me_tensor *x, me_tensor *index);

/** `weight[indices]` of rows: (v, h) and (b, s) to (b, s, h); saves the indices.
 *  Its gradient as me_index()'s. */
me_tensor *me_index_rows(me_engine *e, me_tensor *weight, me_tensor *indices);

/** `torch.zeros(shape).scatter_add_(0, index, x)`: rows of @p x added up to
 *  @p rows rows; saves the indices. */
me_tensor *me_scatter_add_rows(me_engine *e, me_tensor *x, me_tensor *index,
                               uint64_t rows);

/** `y.index_add_(0, index, x)` where operations are deterministic: @p y itself, a
 *  result from now on. Saves the indices and @p x, of whose rows a multiple is
 *  made (index_add_cuda_impl()). */
me_tensor *me_index_add_rows(me_engine *e, me_tensor *y, me_tensor *index,
                             me_tensor *x);

/** `x.masked_select(mask)`: @p selected elements, one dimension; saves mask and
 *  @p x. */
me_tensor *me_masked_select(me_engine *e, me_tensor *x, const me_tensor *mask,
                            uint64_t selected);

/** `x.sum(dim=0).long()` of flags (n, m): int64 counts (m), off the tape. */
me_tensor *me_count_flags(me_engine *e, const me_tensor *x);

/** `torch.count_nonzero(x)` of @p numel float32 elements: a scalar, int64, off
 *  the tape. A mask of all is copied to int64: 9 bytes an element. */
me_tensor *me_count_nonzero(me_engine *e, uint64_t numel);

#endif /* MEMEST_OPS_INDEX_H */
