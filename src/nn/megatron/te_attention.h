/**
 * @file
 * Transformer Engine's DotProductAttention, one function a back end
 * (attention/dot_product_attention/).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_ATTENTION_H
#define MEMEST_NN_MEGATRON_TE_ATTENTION_H

#include "nn/nn.h"

/** FusedAttention: cuDNN's kernel, of which the mask is causal by itself. Shapes
 *  as of me_core_attention_forward().
 *
 *  @param type    how the layer communicates where ranks share a sequence
 *  @param offset  of the softmax, (a/t), or NULL */
me_tensor *me_te_attention_fused(me_nn *nn, me_cp_comm_type type,
                                 me_tensor *const qkv[3], me_tensor *offset);

/** FlashAttention: the package flash-attn, version 2. */
me_tensor *me_te_attention_flash(me_nn *nn, me_cp_comm_type type,
                                 me_tensor *const qkv[3]);

/** FlashAttention: the package flash-attn-3. */
me_tensor *me_te_attention_flash_3(me_nn *nn, me_cp_comm_type type,
                                   bool is_windowed, me_tensor *const qkv[3]);

/** FlashAttention: the package flash-attn-4. */
me_tensor *me_te_attention_flash_4(me_nn *nn, bool is_windowed,
                                   me_tensor *const qkv[3]);

/** How unfused attention runs. */
typedef struct me_te_unfused_spec {
    me_tensor *mask;        /**< that the loader made, or NULL */
    me_tensor *offset;      /**< of the softmax, (a), or NULL */
    bool is_windowed;       /**< the mask is not causal alone */
    me_tensor **max_logits; /**< largest scores of each head so far, (a), owned;
                                 NULL: nobody asks for them */
} me_te_unfused_spec;

/** UnfusedDotProductAttention: products, and TE's masked softmax or PyTorch's. */
me_tensor *me_te_attention_unfused(me_nn *nn, me_tensor *const qkv[3],
                                   const me_te_unfused_spec *spec);

#endif /* MEMEST_NN_MEGATRON_TE_ATTENTION_H */
