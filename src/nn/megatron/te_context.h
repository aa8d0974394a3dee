/**
 * @file
 * Transformer Engine's attention with context parallelism: a rank has part of
 * the rows of a sequence, and meets the keys and values of the others in one of
 * four ways (attention/dot_product_attention/context_parallel.py,
 * attn_forward_func_with_cp()).
 *
 * A rank's rows are two chunks of the sequence, the r-th and the r-th from the
 * end, so that all have the same work under a causal mask. Left out: FP8,
 * packed sequences.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_CONTEXT_H
#define MEMEST_NN_MEGATRON_TE_CONTEXT_H

#include "nn/nn.h"
#include "ops/te_fused_attention.h"

/**
 * AttnFuncWithCPAnd…: each way by its layer's type.
 *
 * @param qkv  contiguous: (z, b, a, d), (z, b, g, d), (z, b, g, u) of z rows of
 *             this rank
 * @param offset  of the softmax, float32 (a), where heads are dealt out; else
 *                NULL
 * @return (z, b, a, u)
 */
me_tensor *me_te_context_attention(me_nn *nn, me_cp_comm_type type,
                                   me_tensor *const qkv[3], me_tensor *offset);

/** The way of these ranks: of a hierarchy with one level alone that level's. */
me_cp_comm_type me_te_context_way(const me_nn *nn, me_cp_comm_type type);

/** @name One function a way
 *  @{ */
/** AttnFuncWithCPAndKVP2P: keys and values go round; with a hierarchy, heads
 * are dealt out first. */
me_tensor *me_te_context_ring(me_nn *nn, me_tensor *const qkv[3],
                              me_tensor *offset);
me_tensor *me_te_context_hierarchy(me_nn *nn, me_tensor *const qkv[3],
                                   me_tensor *offset);
/** AttnFuncWithCPAndKVAllGather: keys and values of all are gathered. */
me_tensor *me_te_context_gather(me_nn *nn, me_tensor *const qkv[3],
                                me_tensor *offset);
/** AttnFuncWithCPAndQKVOA2A: heads are dealt out. */
me_tensor *me_te_context_heads(me_nn *nn, me_tensor *const qkv[3],
                               me_tensor *offset);
/** @} */

/** @name The kernel that the job's attention has, as me_te_fused_forward() and
 *  me_te_fused_backward() run cuDNN's
 *  @{ */
void me_te_context_kernel(me_nn *nn, me_tensor *const qkv[3], me_te_mask mask,
                          me_te_attention_made *made_out);
void me_te_context_kernel_backward(me_nn *nn, me_tensor *const qkv[3],
                                   const me_tensor *offset, me_te_mask mask,
                                   me_tensor **gx);
/** @} */

#endif /* MEMEST_NN_MEGATRON_TE_CONTEXT_H */
