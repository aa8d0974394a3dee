/**
 * @file
 * Softmax over the last dimension, the masked fill before it
 * (aten/native/cuda/SoftMax.cu), and both as one. Shapes are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_SOFTMAX_H
#define MEMEST_OPS_SOFTMAX_H

#include "tensor/tensor.h"

/** `torch.softmax(x, -1)`; saves its result. */
me_tensor *me_softmax(me_engine *e, me_tensor *x);

/** `torch.softmax(x, -1, dtype=torch.float32)`: float16 is read as it is, any other
 *  type is cast first. */
me_tensor *me_softmax_in_float32(me_engine *e, me_tensor *x);

/** Scaling, causal mask and softmax in one kernel, Transformer Engine's and
 *  Apex's alike (ScaledMaskedSoftmax, ScaledUpperTriangMaskedSoftmax): saves its
 *  result, and its backward works in place. */
me_tensor *me_scaled_masked_softmax(me_engine *e, me_tensor *x);

/** `x.masked_fill_(mask, value)`: in place, returns @p x; saves the mask. A
 *  view writes through to its base, as PyTorch's CopySlices does. */
me_tensor *me_masked_fill_in_place(me_engine *e, me_tensor *x,
                                   const me_tensor *mask);

#endif /* MEMEST_OPS_SOFTMAX_H */
