/**
 * @file
 * The experts of a rank (core/transformer/moe/experts.py): one MLP after the other
 * (SequentialMLP), or the products of all at once (TEGroupedMLP), where the back
 * end has such and the job asks for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_EXPERTS_H
#define MEMEST_NN_MEGATRON_EXPERTS_H

#include "nn/checkpoint.h"
#include "nn/megatron/grouped_linear.h"
#include "nn/megatron/mlp.h"

typedef struct me_experts {
    me_module_id module;
    uint32_t count;
    bool is_grouped;
    me_mlp *local;       /**< count of them; of the engine; NULL: grouped */
    me_tensor **tensors; /**< room for three lists, one tensor of each */
    uint64_t *padded;    /**< and for rows of each, once they are padded */
    me_grouped_linear linear_fc1; /**< grouped */
    me_grouped_linear linear_fc2;
    me_section activation; /**< of grouped ones, when recomputed */
} me_experts;

/** The modules and their parameters below @p parent. @p experts must not move
 *  afterwards. */
void me_experts_create(me_nn *nn, me_module_id parent, me_experts *experts);

/**
 * (R, h) to (R, h): rows sorted by expert, weighted.
 *
 * @param tokens  rows of each expert, which R is the sum of
 * @param probs   (R), the routing weight of each row
 */
me_tensor *me_experts_forward(me_nn *nn, const me_experts *experts,
                              me_tensor *x, const uint64_t *tokens,
                              me_tensor *probs);

/** moe_apply_probs_on_input: @p x (R, h) times its rows' weights, which are ones
 *  from then on. @p x is the caller's own name, and is dropped, unless it is the
 *  argument @p given. */
me_tensor *me_apply_probs_on_input(me_nn *nn, me_tensor *x,
                                   const me_tensor *given, me_tensor **probs);

/** @name Of grouped experts, which are called by the others
 *  @{ */
void me_grouped_experts_create(me_nn *nn, me_experts *experts);
me_tensor *me_grouped_experts_forward(me_nn *nn, const me_experts *experts,
                                      me_tensor *x, const uint64_t *tokens,
                                      me_tensor *probs);
/** @} */

#endif /* MEMEST_NN_MEGATRON_EXPERTS_H */
