/**
 * @file
 * Table look-up, and the writes that hide rows of other ranks
 * (aten/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_EMBEDDING_LOOKUP_H
#define MEMEST_OPS_EMBEDDING_LOOKUP_H

#include "tensor/tensor.h"

/** `torch.nn.functional.embedding`: indices (…) int64 and weight (v, h) to
 *  (…, h); saves the indices. */
me_tensor *me_embedding(me_engine *e, me_tensor *indices, me_tensor *weight);

/** `y[mask, :] = 0`: in place, returns @p y; saves the mask. */
me_tensor *me_masked_write_zero(me_engine *e, me_tensor *y,
                                const me_tensor *mask);

#endif /* MEMEST_OPS_EMBEDDING_LOOKUP_H */
