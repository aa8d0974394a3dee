/**
 * @file
 * `torch.nn.functional.cross_entropy` with the mean over all rows
 * (aten/native/LossNLL.cpp, cuda/SoftMax.cu, cuda/NLLLoss.cu).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_CROSS_ENTROPY_H
#define MEMEST_OPS_CROSS_ENTROPY_H

#include "tensor/tensor.h"

/**
 * A scalar of the dtype of @p x.
 *
 * @param x       (…, classes), whose rows are counted as one dimension
 * @param target  int64, an element a row
 */
me_tensor *me_cross_entropy(me_engine *e, me_tensor *x, me_tensor *target);

#endif /* MEMEST_OPS_CROSS_ENTROPY_H */
