/**
 * @file
 * The experts of a rank, one MLP after the other
 * (core/transformer/moe/experts.py, SequentialMLP).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_EXPERTS_H
#define MEMEST_NN_MEGATRON_EXPERTS_H

#include "nn/megatron/mlp.h"

typedef struct me_experts {
    me_module_id module;
    me_mlp *local; /**< count of them; of the engine */
    uint32_t count;
    uint64_t *tokens;    /**< room for one number of each; of the engine */
    me_tensor **tensors; /**< room for three lists, one tensor of each */
} me_experts;

/** The modules and their parameters below @p parent. */
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

#endif /* MEMEST_NN_MEGATRON_EXPERTS_H */
