/**
 * @file
 * What Transformer Engine's Python modules keep for the life of a process:
 * cuBLAS's workspace, dummies of weight gradients, lengths of sequences, masks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_STATE_H
#define MEMEST_NN_MEGATRON_TE_STATE_H

#include "nn/megatron/te_fp8_state.h"
#include "nn/nn.h"
#include "tensor/launch.h"

/** One of what is kept: what, for which sizes and type. */
typedef struct me_te_entry {
    const char *what; /**< static */
    me_shape shape; /**< of the tensor, but for lengths of sequences, whose key
                           is samples and rows */
    me_dtype dtype;
    me_tensor *tensor; /**< owned */
} me_te_entry;

/** All that is kept. */
typedef struct me_te_state {
    me_te_entry *entries;
    uint32_t count;
    uint32_t capacity;
    me_fp8_state fp8;
    me_te_op_end op_end; /**< of norms that end a context in FP8 */
    bool stops_overlap;  /**< layers that are built from now on have no user
                             buffers */
} me_te_state;

/** Let go of it all. */
void me_te_state_fini(me_engine *e, me_te_state *state);

/** Which of cuBLAS's workspaces a product uses. */
typedef enum me_te_workspace {
    ME_TE_WORKSPACE,
    ME_TE_WORKSPACE_OVERLAP /**< that of products beside communication, for each
                                 of the streams that they run on */
} me_te_workspace;

/** A product of TE's: cuBLAS's workspace of the process, if it is the first, and
 *  then as me_gemm(), without PyTorch's own workspace. */
me_tensor *me_te_gemm(me_nn *nn, me_kernel_class kernel, me_dtype dtype,
                      me_shape shape, uint64_t inner);

/** A product of TE's into something that exists already, a weight's main
 *  gradient: (rows, columns) from @p inner. */
void me_te_gemm_into(me_nn *nn, me_kernel_class kernel, me_dtype dtype,
                     me_shape shape, uint64_t inner);

/** A product beside its sizes. */
typedef struct me_te_product {
    me_kernel_class kernel;
    me_operands operands;
    me_te_workspace workspace;
} me_te_product;

/** As me_te_gemm(), of such a product. */
me_tensor *me_te_gemm_with(me_nn *nn, me_te_product product, me_dtype dtype,
                           me_shape shape, uint64_t inner);

/** As me_te_gemm_into(), of such a product; also into a user buffer. */
void me_te_gemm_into_with(me_nn *nn, me_te_product product, me_dtype dtype,
                          me_shape shape, uint64_t inner);

/** The rows of all experts times each one's weight, (rows, columns): a tensor, and
 *  then the workspaces of the process, if it is the first. */
me_tensor *me_te_grouped_gemm(me_nn *nn, me_kernel_class kernel,
                              me_operands operands, me_dtype dtype,
                              me_shape shape, uint64_t inner);

/** Products of @p count experts' weight gradients, each (rows, columns), into
 *  something that exists already, from @p inner rows in all. */
void me_te_grouped_gemm_into(me_nn *nn, me_operands operands, me_dtype dtype,
                             uint32_t count, me_shape shape, uint64_t inner);

/** Do products of weight gradients add to the main gradient by themselves
 *  (gradient_accumulation_fusion)? Apex's kernel does it for layers of
 *  Megatron-LM's own. */
bool me_fuses_weight_gradients(const me_nn *nn);

/** A backward begins whose products add to the main gradient of @p weight, a
 *  leaf, which may still have to get its memory. */
void me_main_grad_get(const me_nn *nn, const me_tensor *weight);

/** get_dummy_wgrad(): what stands for the gradient of a weight of @p shape whose
 *  main gradient has it already. @return a new variable, a view */
me_tensor *me_te_dummy_wgrad(me_nn *nn, me_dtype dtype, const me_shape *shape);

/** Is a gradient such a dummy (grad_added_to_main_grad)? */
bool me_te_is_dummy_wgrad(const me_nn *nn, const me_tensor *gradient);

/** get_full_cu_seqlens(): the lengths of @p batch sequences of @p rows rows; made
 *  once. */
void me_te_full_cu_seqlens(me_nn *nn, uint64_t batch, uint64_t rows);

/** _get_cu_seqlens_info_with_cp(): those of a rank's rows and of half of them, of
 *  sequences of @p rows rows in all. */
void me_te_context_cu_seqlens(me_nn *nn, uint64_t batch, uint64_t rows);

/** get_seq_chunk_ids_for_reordering_before_attn(), or …after_attn(), of @p ranks
 *  ranks. */
void me_te_chunk_ids(me_nn *nn, bool is_before, uint64_t ranks);

/** The places of @p ranks ranks' parts of a softmax offset. */
void me_te_offset_ids(me_nn *nn, uint64_t ranks);

/** _get_default_causal_mask() of @p rows queries and keys; borrowed. */
me_tensor *me_te_causal_mask(me_nn *nn, uint64_t rows);

#endif /* MEMEST_NN_MEGATRON_TE_STATE_H */
