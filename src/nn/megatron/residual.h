/**
 * @file
 * What a sub-layer's output is added to (core/fusions/fused_bias_dropout.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_RESIDUAL_H
#define MEMEST_NN_MEGATRON_RESIDUAL_H

#include "nn/nn.h"

/** `residual + dropout(x + bias)`, (s, b, h); the tape is on even under
 *  recomputation. In evaluation it is written into @p x where nothing asks for a
 *  gradient. @param bias  NULL: none */
me_tensor *me_bias_dropout_add(me_nn *nn, me_tensor *x, me_parameter *bias,
                               me_tensor *residual);

/** What leaves a layer in evaluation: what was added in place is what a linear
 *  layer gave, of Transformer Engine's a view, and no view leaves. */
me_tensor *me_viewless_residual(const me_nn *nn, me_tensor *y);

#endif /* MEMEST_NN_MEGATRON_RESIDUAL_H */
