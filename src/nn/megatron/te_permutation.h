/**
 * @file
 * Transformer Engine's Triton kernels that sort tokens by their experts and back
 * (transformer_engine/pytorch/permutation.py, triton/permutation.py). Each kernel
 * is timed for every kind of arguments at its first call (triton.autotune), for
 * which Triton flushes the card's cache.
 *
 * Left out: FP8, padding, merging of weights in the way back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_PERMUTATION_H
#define MEMEST_NN_MEGATRON_TE_PERMUTATION_H

#include "nn/megatron/moe_utils.h"
#include "nn/nn.h"

/**
 * moe_permute() or moe_permute_with_probs(): as me_permute_tokens(), with the
 * kernel's row map (T, 2·E + 1) int32 as row numbers.
 *
 * @param map    (T, E) flags
 * @param probs  (T, E) weights that go along, or NULL
 */
me_permuted me_te_permute(me_nn *nn, me_tensor *tokens, me_tensor *map,
                          me_tensor *probs, uint64_t rows);

/** moe_unpermute() without weights: (rows, h) to (T, h). */
me_tensor *me_te_unpermute(me_nn *nn, me_tensor *rows, me_tensor *row_map);

/** moe_sort_chunks_by_index(): (rows, h) in the order of other chunks; row numbers
 *  are (rows) int32.
 *
 *  @param probs  (rows) weights that go along, or NULL */
me_permuted me_te_sort_chunks(me_nn *nn, me_tensor *rows, me_tensor *probs);

#endif /* MEMEST_NN_MEGATRON_TE_PERMUTATION_H */
