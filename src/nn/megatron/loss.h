/**
 * @file
 * Cross entropy over a vocabulary that is cut over the tensor-parallel ranks
 * (core/tensor_parallel/cross_entropy.py and its compiled twin).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_LOSS_H
#define MEMEST_NN_MEGATRON_LOSS_H

#include "nn/nn.h"

/** logits (s, b, v/t) and target (s, b) int64 to the loss (s, b), float32. */
me_tensor *me_vocab_parallel_cross_entropy(me_nn *nn, me_tensor *logits,
                                           me_tensor *target);

/** LanguageModule._scale_logits(): of maximal update parametrisation, which take
 *  the name of those that a layer made; else @p logits. */
me_tensor *me_scale_logits(me_nn *nn, me_tensor *logits);

/** LanguageModule.compute_language_model_loss(): labels (b, s) int64 and logits
 *  (s, b, v/t) to the loss (b, s), float32. */
me_tensor *me_language_model_loss(me_nn *nn, me_tensor *labels,
                                  me_tensor *logits);

#endif /* MEMEST_NN_MEGATRON_LOSS_H */
