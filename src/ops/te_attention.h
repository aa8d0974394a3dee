/**
 * @file
 * Transformer Engine's attention operations: cuDNN's fused attention, the
 * masked softmax of the unfused one, and the fused rotary embedding.
 *
 * Sizes are those of TE 2.17.1 with cuDNN 9.19 (common/fused_attn). Left out:
 * FP8 and packed sequences.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_TE_ATTENTION_H
#define MEMEST_OPS_TE_ATTENTION_H

#include "tensor/tensor.h"

/** How fused attention runs. */
typedef struct me_te_attention_spec {
    bool is_interleaved; /**< query, key and value are views of one tensor, and
                                so will their gradients be */
    bool is_deterministic; /**< each block of keys has its own sum of queries'
                                gradients */
} me_te_attention_spec;

/** One backward of cuDNN's kernel. */
typedef struct me_te_attention_call {
    uint64_t batch;
    uint64_t heads;
    uint64_t groups; /**< heads of keys and values */
    uint64_t queries;
    uint64_t keys;
    uint64_t head_size;       /**< of queries and keys */
    uint64_t value_head_size; /**< of values */
    bool is_deterministic;
} me_te_attention_call;

/** Bytes of the backward's workspace: float32 sums of the queries' gradients,
 *  row sums, and with groups the gradients of keys and values of every head. */
uint64_t me_te_attention_workspace_bytes(const me_te_attention_call *call);

/**
 * FusedAttnFunc: (s, b, a, d), (s, b, g, d), (s, b, g, u) to (s, b, a, u).
 *
 * @param offset  of the softmax, float32 (a), or NULL
 */
me_tensor *me_te_fused_attention(me_engine *e, me_tensor *const qkv[3],
                                 me_tensor *offset,
                                 const me_te_attention_spec *spec);

/** ScaledMaskedSoftmax: saves its result, and its backward works in place. */
me_tensor *me_te_masked_softmax(me_engine *e, me_tensor *x);

/** FusedRoPEFunc: one new tensor like @p x, forward and backward. */
me_tensor *me_te_rope(me_engine *e, me_tensor *x, me_tensor *angles);

#endif /* MEMEST_OPS_TE_ATTENTION_H */
