/**
 * @file
 * The package flash-attn-3, as Transformer Engine calls it on Hopper
 * (hopper/flash_attn_interface.py, hopper/flash_api_stable.cpp of 3.0.0; its
 * flash_api.cpp, for PyTorch before 2.9, makes the same). It knows no dropout, so
 * it keeps no state of random numbers, and heads of keys and values need not be
 * as wide.
 *
 * Transformer Engine asks for keys in one piece (`num_splits=1`), so there are no
 * partial results. Left out: packed sequences and FP8, which it takes in
 * inference alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_FLASH_ATTN_3_H
#define MEMEST_OPS_FLASH_ATTN_3_H

#include "ops/te_fused_attention.h"

/** `_flash_attn_forward()`: (s, b, a, d) over (n, b, g, d) and (n, b, g, u), in
 *  whatever order they are in memory. @p made_out are new variables of the running
 *  frame, but no random state; the statistics are log-sum-exps. */
void me_flash_attn_3_forward(me_engine *e, me_tensor *const qkv[3],
                             me_te_mask mask, me_te_attention_made *made_out);

/** `_flash_attn_backward()`: gradients like query, key and value, three new
 *  variables. */
void me_flash_attn_3_backward(me_engine *e, me_tensor *const qkv[3],
                              me_te_mask mask, me_tensor **gx);

/** `flash_attn_func()`: (s, b, a, d), (n, b, g, d) and (n, b, g, u), views of which
 *  the batch is before the sequence in memory, to (s, b, a, u). */
me_tensor *me_flash_attn_3(me_engine *e, me_tensor *const qkv[3],
                           me_te_mask mask);

#endif /* MEMEST_OPS_FLASH_ATTN_3_H */
