/**
 * @file
 * The router of a mixture of experts: to which experts each token goes, with
 * what weights (core/transformer/moe/router.py, moe_utils.py). What it is made of
 * stands in router_parts.h.
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
    bool is_mtp_layer;    /**< of multi-token prediction */
    me_parameter *weight; /**< (E, h), on every tensor rank */
    me_parameter *bias;   /**< (E); NULL: none */
    /** Buffers of the module, owned; NULL: none.
     *  @{ */
    me_tensor *local_tokens_per_expert;  /**< (E) since the last step */
    me_tensor *expert_bias;              /**< (E) */
    me_tensor *global_tokens_per_expert; /**< (E) of the batch so far */
    me_tensor *ga_steps;                 /**< of it */
    /** @} */
    me_tensor *input_jitter[2]; /**< bounds of the noise, after its first use */
    me_tensor *forced_bias; /**< (E) of a deviation below 0; NULL: none yet */
} me_router;

/** The module, its parameters and buffers below @p parent, in the layer of number
 *  @p layer, those of multi-token prediction counted on. @p router must not move
 *  afterwards. */
void me_router_create(me_nn *nn, me_module_id parent, int32_t layer,
                      me_router *router);

/** Let go of what it keeps. */
void me_router_fini(me_engine *e, me_router *router);

/**
 * (s, b, h) to routing weights (T, E).
 *
 * @param map_out  (T, E) flags
 */
me_tensor *me_router_forward(me_nn *nn, me_router *router, me_tensor *x,
                             me_tensor **map_out);

#endif /* MEMEST_NN_MEGATRON_ROUTER_H */
