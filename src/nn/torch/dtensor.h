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
#include "tensor/kind.h"

/** Of a DTensor. */
typedef struct me_dtensor {
    me_kind kind;
    me_dlayout layout;
    uint64_t whole_extent; /**< all of the dimension that it is cut along, where
                                ranks do not divide it; else 0 */
} me_dtensor;

/** Of a parameter that is one. */
typedef struct me_dparameter {
    me_dtensor tensor;
    me_dlayout gradient; /**< how what its backward makes lies */
    uint64_t whole[2];   /**< the first two dimensions of all ranks' parts */
    bool is_uneven;      /**< ranks do not divide it */
} me_dparameter;

/** What @p x is as a DTensor; of a plain tensor all zero. */
const me_dtensor *me_dtensor_of(const me_tensor *x);

/** The same of a parameter. */
const me_dparameter *me_dparameter_of(const me_parameter *p);

/** How @p x lies; ME_DLAYOUT_NONE of a plain tensor. */
static inline me_dlayout me_layout_of(const me_tensor *x)
{
    return me_dtensor_of(x)->layout;
}

/** @p x lies so from now on; nothing happens after a failure. */
void me_lay(me_engine *e, me_tensor *x, me_dlayout layout);

/** The same with the whole extent of what is cut, 0 where ranks divide it. */
void me_lay_uneven(me_engine *e, me_tensor *x, me_dlayout layout,
                   uint64_t whole_extent);

/** @p layout of a tensor of @p ndim dimensions, with Shard(-1) resolved. */
me_dlayout me_dlayout_of(me_dlayout layout, int32_t ndim);

/** This rank's part of a dimension of @p whole elements, as torch.chunk() cuts
 *  it: the last ranks may have less, or nothing. */
uint64_t me_part_of(const me_nn *nn, uint64_t whole);

/** The largest part, to which collectives pad the others. */
uint64_t me_padded_part(const me_nn *nn, uint64_t whole);

/** @p whole where the ranks do not divide it (me_dtensor's whole_extent); else
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
