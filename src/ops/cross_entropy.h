/**
 * @file
 * `torch.nn.functional.cross_entropy` with the mean over all rows
 * (aten/native/LossNLL.cpp, cuda/SoftMax.cu, cuda/NLLLoss.cu).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_CROSS_ENTROPY_H
#define MEMEST_OPS_CROSS_ENTROPY_H

#include "tensor/autograd.h"

#include <stdbool.h>

/**
 * A scalar of the dtype of @p x.
 *
 * @param x       (…, classes), whose rows are counted as one dimension
 * @param target  int64, an element a row
 */
me_tensor *me_cross_entropy(me_engine *e, me_tensor *x, me_tensor *target);

/** Are there as many int64 targets as @p x has rows? The engine has failed if
 *  not. */
bool me_cross_entropy_takes(me_engine *e, const me_tensor *x,
                            const me_tensor *target);

/** What NllLossBackward0 saves, in its order. */
enum {
    ME_NLL_SAVED_SELF,
    ME_NLL_SAVED_TARGET,
    ME_NLL_SAVED_TOTAL_WEIGHT
};

/** Save it; @p total_weight stays the caller's. */
void me_nll_loss_save(me_engine *e, me_node *node, me_tensor *x,
                      me_tensor *target, me_tensor *total_weight);

#endif /* MEMEST_OPS_CROSS_ENTROPY_H */
