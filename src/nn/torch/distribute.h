/**
 * @file
 * torch.distributed.tensor.distribute_tensor() of parameters (PyTorch 2.11):
 * each tensor-parallel rank receives its part of the first one's, and the whole
 * one goes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_DISTRIBUTE_H
#define MEMEST_NN_TORCH_DISTRIBUTE_H

#include "model/layer.h"
#include "nn/nn.h"

/**
 * A parameter becomes a DTensor, unless it is one. Of two modules with tied
 * weights each makes a part of its own, until me_distribute_end(). Collective
 * over the tensor-parallel ranks.
 *
 * @param p         NULL: nothing is done
 * @param layout    how it will lie; a dimension that is cut may leave the last
 *                  ranks less, but no rank nothing: a failure of the engine
 * @param gradient  how the gradient lies that its backward makes
 * @param is_owner  false: the module has another's weight
 * @return what it was, the caller's; NULL if it lives on
 */
me_tensor *me_distribute(const me_nn *nn, me_parameter *p, me_dlayout layout,
                         me_dlayout gradient, bool is_owner);

/** `output.weight = embedding.weight` once a plan is applied: the other part
 *  goes. A failure of the engine if only one of the two modules has made one.
 *  Local. */
void me_distribute_end(const me_nn *nn);

#endif /* MEMEST_NN_TORCH_DISTRIBUTE_H */
