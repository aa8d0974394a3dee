/**
 * @file
 * Sorting tokens by their experts and back
 * (core/transformer/moe/moe_utils.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MOE_UTILS_H
#define MEMEST_NN_MEGATRON_MOE_UTILS_H

#include "tensor/tensor.h"

/** What permute() gives back. */
typedef struct me_permuted {
    me_tensor *tokens;      /**< (rows, h) */
    me_tensor *probs;       /**< (rows), or NULL */
    me_tensor *row_numbers; /**< (rows) int64: the token of each row */
} me_permuted;

/** pad_routing_map(): more flags of @p map are set, in place, until each expert
 *  has a multiple. */
void me_pad_routing_map(me_engine *e, const me_tensor *map);

/**
 * permute(): a row for each token and expert of its, sorted by expert.
 *
 * @param tokens  (T, h)
 * @param map     (T, E) flags
 * @param probs   (T, E) weights that go along, or NULL
 * @param rows    flags that are set
 */
me_permuted me_permute_tokens(me_engine *e, me_tensor *tokens, me_tensor *map,
                              me_tensor *probs, uint64_t rows);

/** unpermute(): the rows of each token summed, (rows, h) to (n_tokens, h). */
me_tensor *me_unpermute(me_engine *e, me_tensor *rows, me_tensor *row_numbers,
                        uint64_t n_tokens);

#endif /* MEMEST_NN_MEGATRON_MOE_UTILS_H */
