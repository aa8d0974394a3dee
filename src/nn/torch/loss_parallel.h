/**
 * @file
 * `torch.distributed.tensor.parallel.loss_parallel` (PyTorch 2.11): the cross
 * entropy of logits whose classes the tensor-parallel ranks share. No rank
 * sees a whole row: the largest logit, the sum of exponentials and the
 * target's logarithm are all-reduced.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_LOSS_PARALLEL_H
#define MEMEST_NN_TORCH_LOSS_PARALLEL_H

#include "nn/nn.h"

/**
 * `cross_entropy(x, target)` with the mean over all rows. Collective over the
 * tensor-parallel ranks.
 *
 * @param x       (…, classes) of this rank, a DTensor cut along its last
 *                dimension; rows are counted as one dimension
 * @param target  int64, an element a row, the same on each rank
 * @return a scalar of the dtype of @p x, whole on each rank; a failure of the
 *         engine where shapes do not fit
 */
me_tensor *me_loss_parallel(const me_nn *nn, me_tensor *x, me_tensor *target);

#endif /* MEMEST_NN_TORCH_LOSS_PARALLEL_H */
