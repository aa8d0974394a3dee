/**
 * @file
 * Attention kernels (aten/native/transformers/cuda/flash_attn).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_FLASH_ATTENTION_H
#define MEMEST_OPS_FLASH_ATTENTION_H

#include "tensor/tensor.h"

/**
 * `scaled_dot_product_attention(…, is_causal=True)` with PyTorch's flash
 * kernel; heads of key and value may be fewer (enable_gqa).
 *
 * @param query  (b, a, s, d)
 * @param key    (b, g, s, d), as @p value; where values have another head size
 *               u, g must be a
 * @return (b, a, s, u) in the memory order of @p query
 */
me_tensor *me_sdpa_flash(me_engine *e, me_tensor *query, me_tensor *key,
                         me_tensor *value, double dropout);

/** Into how many pieces the flash kernel splits the keys
 *  (flash_attn's num_splits_heuristic), 1: not at all. @p heads are those of the
 *  query, @p queries and @p keys lengths of sequences. */
uint64_t me_flash_key_splits(const me_card *card, uint64_t batch,
                             uint64_t heads, uint64_t queries, uint64_t keys,
                             uint64_t head_size);

/** `x.repeat_interleave(n, dim=2)` of (s, b, g, d): a copy. */
me_tensor *me_repeat_heads(me_engine *e, me_tensor *x, uint64_t n);

#endif /* MEMEST_OPS_FLASH_ATTENTION_H */
