/**
 * @file
 * Core attention: query, key and value to context, one row an implementation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_CORE_ATTENTION_H
#define MEMEST_NN_MEGATRON_CORE_ATTENTION_H

#include "nn/checkpoint.h"

/** A layer's core attention. Has no parameters, but a name. */
typedef struct me_core_attention {
    me_module_id module;
    me_core_attention_kind kind;
    bool is_windowed; /**< a query sees the last keys before it alone */
    me_cp_comm_type cp_comm_type; /**< where ranks share a sequence */
    me_parameter *softmax_offset; /**< learnable, (a/t); or NULL */
    me_tensor *softmax_one;       /**< off-by-one: the same, owned; or NULL */
    me_tensor **max_logits; /**< largest scores since the last step, (a/t), one
                                 tensor, owned; NULL: nobody asks for them */
    me_section section;     /**< itself, when it is recomputed */
    struct me_fp8_module *fp8; /**< what Transformer Engine keeps of it though
                                    it computes in half precision; NULL: none */
} me_core_attention;

/** The module below @p parent, of layer @p number of the model, behind which those
 *  of multi-token prediction are numbered; @p core stays where it is. */
void me_core_attention_create(me_nn *nn, me_module_id parent, int32_t number,
                              me_core_attention *core);

/** Let go of what it holds beside its parameters. */
void me_core_attention_fini(me_engine *e, me_core_attention *core);

/** clip_qk(): what a step does with the largest scores, which are then forgotten.
 *  Nothing without them. */
void me_core_attention_clip(me_nn *nn, const me_core_attention *core);

/** Where a list of the model's layers has layer @p number: those of multi-token
 *  prediction have numbers of their own, from the first. */
int32_t me_attention_number(const me_nn *nn, int32_t number);

/** Does the backward run it again? */
bool me_core_attention_is_recomputed(const me_nn *nn);

/**
 * Run, or run to be recomputed, as `--recompute-modules core_attn` asks
 * (attention.py, _checkpointed_attention_forward).
 *
 * @param query  (s, b, a/t, d)
 * @param key    (s, b, g/t, d)
 * @param value  (s, b, g/t, u); u is d but for multi-latent attention
 * @param mask   (b, 1, s, s) bool, or NULL: causal, made by the layer itself
 * @return (s, b, a·u/t)
 */
me_tensor *me_core_attention_forward(me_nn *nn, const me_core_attention *core,
                                     me_tensor *query, me_tensor *key,
                                     me_tensor *value, me_tensor *mask);

#endif /* MEMEST_NN_MEGATRON_CORE_ATTENTION_H */
