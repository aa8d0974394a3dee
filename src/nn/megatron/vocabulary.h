/**
 * @file
 * A vocabulary that is cut over the tensor-parallel ranks: what of it is
 * another rank's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_VOCABULARY_H
#define MEMEST_NN_MEGATRON_VOCABULARY_H

#include "tensor/tensor.h"

/**
 * Mark the ids of other ranks, as Megatron's vocabulary-parallel embedding and
 * cross entropy do.
 *
 * @param ids         int64, any shape
 * @param masked_out  ids counted from this rank's first, others set to 0; int64
 * @return the mask, bool; both are variables of the running frame
 */
me_tensor *me_mask_other_vocabulary(me_engine *e, const me_tensor *ids,
                                    me_tensor **masked_out);

#endif /* MEMEST_NN_MEGATRON_VOCABULARY_H */
