/**
 * @file
 * Transformer Engine's all-to-all of context parallelism: each rank gets all
 * rows of the sequence for its part of the heads, and back
 * (attention/dot_product_attention/context_parallel.py,
 * flash_attn_a2a_communicate()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_EXCHANGE_H
#define MEMEST_NN_MEGATRON_TE_EXCHANGE_H

#include "nn/nn.h"

enum {
    ME_TE_EXCHANGED = 3 /**< tensors of one exchange at most */
};

/** Where a stride through the heads begins and ends. */
typedef enum me_te_exchange_way {
    ME_TE_TO_HEADS, /**< (s, b, a, d) to (s n, b, a/n, d), in order again */
    ME_TE_TO_ROWS   /**< the way back */
} me_te_exchange_way;

/**
 * Exchange @p count tensors in @p group of n ranks, one after the other while the
 * next is prepared: each takes a buffer to send and one to receive, which live to
 * the end, and the result, which one of the two streams makes.
 *
 * @param tensors  borrowed; then the results, new variables of the running frame
 */
void me_te_exchange(me_nn *nn, me_group_kind group, me_te_exchange_way way,
                    uint32_t count, me_tensor **tensors);

#endif /* MEMEST_NN_MEGATRON_TE_EXCHANGE_H */
