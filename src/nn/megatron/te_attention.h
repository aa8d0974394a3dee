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
 *  @param offset  of the softmax, (a/t), or NULL */
me_tensor *me_te_attention_fused(me_nn *nn, me_tensor *const qkv[3],
                                 me_tensor *offset);

/** UnfusedDotProductAttention: products, and TE's masked softmax or PyTorch's.
 *
 *  @param mask    that the loader made, or NULL
 *  @param offset  of the softmax, (a), or NULL */
me_tensor *me_te_attention_unfused(me_nn *nn, me_tensor *const qkv[3],
                                   me_tensor *mask, me_tensor *offset);

#endif /* MEMEST_NN_MEGATRON_TE_ATTENTION_H */
