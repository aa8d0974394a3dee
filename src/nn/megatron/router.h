/**
 * @file
 * The router of a mixture of experts: to which experts each token goes, with
 * what weights (core/transformer/moe/router.py, moe_utils.py).
 *
 * Letters beside those of nn.h: T tokens of this rank's micro-batch, E experts
 * of the model, K experts of a token.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_ROUTER_H
#define MEMEST_NN_MEGATRON_ROUTER_H

#include "nn/nn.h"

typedef struct me_router {
    me_nn *nn; /**< borrowed, does not move */
    me_module_id module;
    me_parameter *weight; /**< (E, h), on every tensor rank */
} me_router;

/** The module and its weight below @p parent. */
me_router me_router_create(me_nn *nn, me_module_id parent);

/**
 * (s, b, h) to routing weights (T, E).
 *
 * @param map_out  (T, E) flags
 */
me_tensor *me_router_forward(me_nn *nn, const me_router *router, me_tensor *x,
                             me_tensor **map_out);

#endif /* MEMEST_NN_MEGATRON_ROUTER_H */
