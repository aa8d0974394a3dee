/**
 * @file
 * Tensors that lie on several ranks (torch.distributed.tensor, PyTorch 2.11), on
 * a mesh of one dimension, the tensor-parallel ranks: this rank's part is a
 * tensor whose layout says how the whole lies.
 *
 * A redistribution hands its output out before the collective is done; what the
 * collective reads lives until the output is used (AsyncCollectiveTensor).
 * Where ranks do not divide a dimension the last ones have less of it, and
 * gathers pad; what is reduced and scattered must divide.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_DTENSOR_H
#define MEMEST_NN_TORCH_DTENSOR_H

#include "model/layer.h"
#include "nn/nn.h"

/** @p layout of a tensor of @p ndim dimensions, with Shard(-1) resolved. */
me_dlayout me_dlayout_of(me_dlayout layout, int32_t ndim);

/** This rank's part of a dimension of @p whole elements, as torch.chunk() cuts
 *  it: the last ranks may have less, or nothing. */
uint64_t me_part_of(const me_nn *nn, uint64_t whole);

/** The largest part, to which collectives pad the others. */
uint64_t me_padded_part(const me_nn *nn, uint64_t whole);

/** @p whole where the ranks do not divide it (me_tensor's whole_extent); else
 *  0. */
uint64_t me_uneven_extent(const me_nn *nn, uint64_t whole);

/** @p y, made of @p x element by element, lies as @p x does. @return @p y */
me_tensor *me_lies_as(me_engine *e, me_tensor *y, const me_tensor *x);

/** "Replicate", "Partial", "Shard(1)", …; static. */
const char *me_dlayout_name(me_dlayout layout);

/**
 * DTensor.from_local(): @p x is this rank's part of a whole that lies as
 * @p layout says.
 *
 * @param gradient  how the gradient that comes back lies, which is
 *                  redistributed to @p layout
 */
me_tensor *me_from_local(const me_nn *nn, me_tensor *x, me_dlayout layout,
                         me_dlayout gradient);

/**
 * DTensor.redistribute(async_op=True).
 *
 * @param gradient  how the gradient of the output lies
 * @return @p x if it lies so
 */
me_tensor *me_redistribute(const me_nn *nn, me_tensor *x, me_dlayout layout,
                           me_dlayout gradient);

/** DTensor.to_local(): an alias that is a plain tensor. */
me_tensor *me_to_local(const me_nn *nn, me_tensor *x);

/** funcol.all_reduce() of a local tensor over the tensor-parallel ranks: a copy,
 *  in place. */
me_tensor *me_all_reduce_local(const me_nn *nn, const me_tensor *x);

/** What redistribute_local_tensor() allocates, without the tape. @return @p x
 *  if nothing is to do */
me_tensor *me_redistribute_local(const me_nn *nn, me_tensor *x, me_dlayout from,
                                 me_dlayout to, bool is_async);

#endif /* MEMEST_NN_TORCH_DTENSOR_H */
