/**
 * @file
 * The package flash-attn-4, as Transformer Engine calls it
 * (flash_attn/cute/interface.py of 4.0.0b11, the version that it names). It knows
 * no dropout and no context parallelism, and heads of keys and values need not be
 * as wide.
 *
 * Transformer Engine asks for keys in one piece (`num_splits=1`), so there are no
 * partial results. Left out: packed sequences, FP8, and what CuTe keeps on the card
 * for kernels that it compiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_FLASH_ATTN_4_H
#define MEMEST_OPS_FLASH_ATTN_4_H

#include "ops/te_fused_attention.h"

/** `flash_attn_func()`: (s, b, a, d), (n, b, g, d) and (n, b, g, u), views of which
 *  the batch is before the sequence in memory, to (s, b, a, u). @param mask  causal
 *  or a window */
me_tensor *me_flash_attn_4(me_engine *e, me_tensor *const qkv[3],
                           me_te_mask mask);

#endif /* MEMEST_OPS_FLASH_ATTN_4_H */
