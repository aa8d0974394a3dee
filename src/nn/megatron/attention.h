/**
 * @file
 * Self-attention (core/transformer/attention.py, SelfAttention).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_ATTENTION_H
#define MEMEST_NN_MEGATRON_ATTENTION_H

#include "nn/megatron/core_attention.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/norm.h"

typedef struct me_attention {
    me_module_id module;
    me_core_attention core_attention;
    me_linear linear_proj;
    me_linear linear_qkv;
    me_norm q_layernorm; /**< with qk_layernorm or qk_l2_norm */
    me_norm k_layernorm;
    bool has_no_rope; /**< angles are not for it */
} me_attention;

/** The module and its parameters below @p parent, in Megatron's order. */
void me_attention_create(me_nn *nn, me_module_id parent, int32_t number,
                         me_attention *attention);

/** Core attention on query, key and value, what it saves offloaded if the job
 *  wants it: the query's name is bound anew then. @return a variable of the
 *  running frame */
me_tensor *me_attention_run_core(me_nn *nn, const me_core_attention *core,
                                 me_tensor *qkv[3], me_tensor *mask);

/** The projection of what it made, likewise. */
me_tensor *me_attention_project(me_nn *nn, const me_linear *projection,
                                me_tensor *context);

/**
 * (s, b, h) to (s, b, h); the projection's bias is left to the caller.
 *
 * @param mask    or NULL
 * @param angles  of the rotary embedding, or NULL
 */
me_tensor *me_attention_forward(me_nn *nn, const me_attention *attention,
                                me_tensor *x, me_tensor *mask,
                                me_tensor *angles);

#endif /* MEMEST_NN_MEGATRON_ATTENTION_H */
