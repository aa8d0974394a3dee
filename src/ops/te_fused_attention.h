/**
 * @file
 * Transformer Engine's attention operations: cuDNN's fused attention, the
 * fused rotary embedding.
 *
 * Sizes are those of TE 2.17.1 with cuDNN 9.19 (common/fused_attn). Left out:
 * FP8 and packed sequences.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_TE_FUSED_ATTENTION_H
#define MEMEST_OPS_TE_FUSED_ATTENTION_H

#include "tensor/tensor.h"

/** Whose keys a query sees. */
typedef enum me_te_mask {
    ME_TE_MASK_CAUSAL, /**< of the last query all, of each before it one less */
    ME_TE_MASK_NONE,   /**< all */
    ME_TE_MASK_WINDOW  /**< causal, and of the last keys alone; told to
                            flash-attn 3, whose scheduler needs less */
} me_te_mask;

/** How fused attention runs. */
typedef struct me_te_attention_spec {
    bool is_interleaved; /**< query, key and value are views of one tensor, and
                                so will their gradients be */
    me_te_mask mask;
} me_te_attention_spec;

/** What a forward of cuDNN's kernel makes, for its backward too. */
typedef struct me_te_attention_made {
    me_tensor *output;     /**< (s, b, a, u) */
    me_tensor *rng;        /**< state of random numbers, 16 bytes */
    me_tensor *statistics; /**< of the softmax, float32 (b, a, s, 1) */
} me_te_attention_made;

/** One backward of cuDNN's kernel. */
typedef struct me_te_attention_call {
    uint64_t batch;
    uint64_t heads;
    uint64_t groups; /**< heads of keys and values */
    uint64_t queries;
    uint64_t keys;
    uint64_t head_size;       /**< of queries and keys */
    uint64_t value_head_size; /**< of values */
    bool is_deterministic; /**< each block of keys has its own sum of queries'
                                gradients */
} me_te_attention_call;

/** Bytes of the backward's workspace: float32 sums of the queries' gradients,
 *  row sums, and with groups the gradients of keys and values of every head. */
uint64_t me_te_attention_workspace_bytes(const me_te_attention_call *call);

/** fused_attn_fwd(), by which FusedAttnFunc and context parallelism run the
 *  kernel: queries (s, b, a, d) over keys and values (n, b, g, d) and (n, b, g,
 *  u). @p made_out are new variables of the running frame. */
void me_te_fused_forward(me_engine *e, me_tensor *const qkv[3], me_te_mask mask,
                         me_te_attention_made *made_out);

/** fused_attn_bwd(): gradients like query, key and value, three new variables
 *  unless the spec says that they are views of one. @p offset of the softmax, or
 *  NULL, has its own, the fourth. */
void me_te_fused_backward(me_engine *e, me_tensor *const qkv[3],
                          const me_tensor *offset,
                          const me_te_attention_spec *spec, me_tensor **gx);

/**
 * FusedAttnFunc: (s, b, a, d), (s, b, g, d), (s, b, g, u) to (s, b, a, u).
 *
 * @param offset  of the softmax, float32 (a), or NULL
 */
me_tensor *me_te_fused_attention(me_engine *e, me_tensor *const qkv[3],
                                 me_tensor *offset,
                                 const me_te_attention_spec *spec);

/** FusedRoPEFunc: one new tensor like @p x, forward and backward. */
me_tensor *me_te_rope(me_engine *e, me_tensor *x, me_tensor *angles);

#endif /* MEMEST_OPS_TE_FUSED_ATTENTION_H */
