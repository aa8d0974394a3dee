/**
 * @file
 * Transformer Engine's linear layers in FP8: _Linear (pytorch/module/linear.py)
 * and _LayerNormLinear (layernorm_linear.py) under an fp8_autocast.
 *
 * Left out: weights without a cache of their quantised copy, gathering of
 * blocks whose rows are no multiple of 128, which Transformer Engine gathers
 * unquantised.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_FP8_LINEAR_H
#define MEMEST_NN_MEGATRON_TE_FP8_LINEAR_H

#include "nn/megatron/linear.h"

/** x · weightᵀ, its rows gathered before or scattered after. */
me_tensor *me_te_fp8_linear(me_nn *nn, const me_linear *linear, me_tensor *x);

/** norm(x) · weightᵀ + bias. */
me_tensor *me_te_fp8_norm_linear(me_nn *nn, const me_linear *linear,
                                 me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_TE_FP8_LINEAR_H */
