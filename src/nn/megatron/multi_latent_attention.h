/**
 * @file
 * Multi-latent attention (core/transformer/multi_latent_attention.py,
 * MLASelfAttention): queries, keys and values are projected down to a latent
 * each and up again to the heads; positions turn columns of their own, which
 * the key shares between its heads. Absorption of projections, for inference,
 * is left out.
 *
 * The letters beyond those of nn/nn.h: Q and V are the widths of the query's
 * and the key-value latent, c the columns of a head without position, r those
 * that turn, u the value's head size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MULTI_LATENT_ATTENTION_H
#define MEMEST_NN_MEGATRON_MULTI_LATENT_ATTENTION_H

#include "nn/checkpoint.h"
#include "nn/megatron/core_attention.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/norm.h"
#include "nn/megatron/rope.h"

typedef struct me_multi_latent_attention {
    me_module_id module;
    me_core_attention core_attention;
    me_linear linear_proj;
    me_linear linear_q_proj;      /**< without a query latent */
    me_linear linear_q_down_proj; /**< with one, as the next */
    me_linear linear_q_up_proj;
    me_linear linear_kv_down_proj;
    me_linear linear_qkv_down_proj; /**< in place of those two */
    me_linear linear_kv_up_proj;
    me_norm q_layernorm; /**< of the latents, with qk_layernorm */
    me_norm kv_layernorm;
    me_rope *rotary_pos_emb;  /**< each layer's own; the engine's memory */
    me_section heads_section; /**< from the latents to the heads */
} me_multi_latent_attention;

/** The module and its parameters below @p parent, in Megatron's order. */
void me_multi_latent_attention_create(me_nn *nn, me_module_id parent,
                                      int32_t number,
                                      me_multi_latent_attention *attention);

/** Let go of what a layer holds beside its parameters; one that was never
 *  created is allowed. */
void me_multi_latent_attention_fini(me_engine *e,
                                    me_multi_latent_attention *attention);

/**
 * (s, b, h) to (s, b, h); the projection's bias is left to the caller.
 *
 * @param mask  or NULL
 */
me_tensor *
me_multi_latent_attention_forward(me_nn *nn,
                                  const me_multi_latent_attention *attention,
                                  me_tensor *x, me_tensor *mask);

#endif /* MEMEST_NN_MEGATRON_MULTI_LATENT_ATTENTION_H */
