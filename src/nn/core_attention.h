/**
 * @file
 * Core attention: query, key and value to context, one row an implementation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_CORE_ATTENTION_H
#define MEMEST_NN_CORE_ATTENTION_H

#include "nn/nn.h"

/**
 * @param query  (s, b, a/t, d)
 * @param key    (s, b, g/t, d)
 * @param value  (s, b, g/t, u); u is d but for multi-latent attention
 * @param mask   (b, 1, s, s) bool, or NULL: causal, made by the layer itself
 * @return (s, b, a·u/t)
 */
me_tensor *me_core_attention_forward(me_nn *nn, me_module_id module,
                                     me_tensor *query, me_tensor *key,
                                     me_tensor *value, me_tensor *mask);

#endif /* MEMEST_NN_CORE_ATTENTION_H */
