/**
 * @file
 * Transformer Engine's cross entropy (transformer_engine/pytorch/
 * cross_entropy.py), whose kernels write the gradient where the logits are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_LOSS_H
#define MEMEST_NN_MEGATRON_TE_LOSS_H

#include "nn/nn.h"

/** As me_vocab_parallel_cross_entropy(): logits (s, b, v/t) and target (s, b) to
 *  the loss (s, b), float32. */
me_tensor *me_te_cross_entropy(me_nn *nn, me_tensor *logits, me_tensor *target);

#endif /* MEMEST_NN_MEGATRON_TE_LOSS_H */
