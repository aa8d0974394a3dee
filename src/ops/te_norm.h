/**
 * @file
 * Transformer Engine's norms: what apply_normalization() and its backward ask
 * the allocator for, and the norm as an operation of te.ops, which is a node of
 * the tape by itself. Rows are all dimensions but the last.
 *
 * Kernels of TE 2.17.1 (common/normalization). Their workspaces are asked for
 * and given back within the call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_TE_NORM_H
#define MEMEST_OPS_TE_NORM_H

#include "tensor/tensor.h"

/** What a norm keeps of each row, float32; RMSNorm has no mean. */
typedef struct me_te_statistics {
    me_tensor *mean; /**< NULL: RMSNorm */
    me_tensor *rstd;
} me_te_statistics;

/** One call of a norm's kernel. */
typedef struct me_te_norm_call {
    bool is_layer_norm; /**< else RMSNorm */
    bool is_backward;
    me_dtype dtype; /**< of input and output */
    uint64_t rows;
    uint64_t columns;
    uint32_t margin; /**< SMs of the card that are left to others; not all */
} me_te_norm_call;

/** Bytes of the workspace that a kernel asks for; at least 1. */
uint64_t me_te_norm_workspace_bytes(const me_card *card,
                                    const me_te_norm_call *call);

/** The statistics of @p x that a norm's kernel will write: new variables. */
me_te_statistics me_te_norm_statistics(me_engine *e, const me_tensor *x,
                                       bool is_layer_norm);

/** The forward's kernel. @return its workspace, a new variable that the caller
 *  drops */
me_tensor *me_te_norm_kernel(me_engine *e, const me_tensor *x,
                             bool is_layer_norm);

/** The normalised @p x, off the tape. @return a new variable of the frame, as
 *  the statistics are */
me_tensor *me_te_normalize(me_engine *e, const me_tensor *x, bool is_layer_norm,
                           me_te_statistics *statistics_out);

/** The gradients of input, weight and (LayerNorm) bias into @p gx, off the tape;
 *  @p weight says what a weight's gradient looks like. */
void me_te_normalize_backward(me_engine *e, const me_tensor *gy,
                              const me_tensor *weight, bool is_layer_norm,
                              me_tensor *gx[3]);

/** What a function of te hands on of @p x: a view of what the kernel made, which
 *  keeps that (DifferentiableViewMeta's base), so that a sum with it is not made
 *  in place; takes @p x. @return NULL for NULL */
me_tensor *me_te_op_view(me_engine *e, me_tensor *x);

/** What the fuser does at the end of an operation's backward. */
typedef struct me_te_op_end {
    void (*run)(void *self);
    void *self;
} me_te_op_end;

/** te.ops.LayerNorm or RMSNorm (@p bias NULL): an operation on the tape, whose
 *  output is a view.
 *
 *  @param end  of its backward; lives as long as the tape; NULL: nothing */
me_tensor *me_te_op_norm(me_engine *e, me_tensor *x, me_tensor *weight,
                         me_tensor *bias, const me_te_op_end *end);

#endif /* MEMEST_OPS_TE_NORM_H */
