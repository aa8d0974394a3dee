/**
 * @file
 * The package flash-attn, version 2, as Transformer Engine calls it
 * (csrc/flash_attn/flash_api.cpp of 2.8.3; flash_attn_interface.py). PyTorch's own
 * copy of its kernel is in flash_attention.h.
 *
 * Left out: packed sequences. Versions 3 and 4 are in flash_attn_3.h and
 * flash_attn_4.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_FLASH_ATTN_H
#define MEMEST_OPS_FLASH_ATTN_H

#include "ops/te_fused_attention.h"
#include "tensor/launch.h"

/** Tells an observer of the kernel, forward or backward, over (s, b, a, d) and
 *  (n, b, g, d). Rows of queries, heads and their size stand for a product's m,
 *  batch, k. Two products over the keys that are seen, 2.5 times as much on the way
 *  back. */
void me_flash_attn_tell(me_engine *e, me_kernel_class kernel,
                        me_tensor *const qkv[2], me_te_mask mask);

/**
 * `mha_fwd()`: (s, b, a, d) over (n, b, g, d), in whatever order they are in
 * memory. @p made_out are new variables of the running frame; the statistics are
 * log-sum-exps.
 */
void me_flash_attn_forward(me_engine *e, me_tensor *const qkv[3],
                           me_te_mask mask, double dropout,
                           me_te_attention_made *made_out);

/** `mha_bwd()`: gradients like query, key and value, three new variables. */
void me_flash_attn_backward(me_engine *e, me_tensor *const qkv[3],
                            me_te_mask mask, me_tensor **gx);

/** `flash_attn_func(…, causal=True)`: (s, b, a, d), views of which the batch is
 *  before the sequence in memory, to the same. */
me_tensor *me_flash_attn(me_engine *e, me_tensor *const qkv[3], double dropout);

/**
 * TE's _PrepareQKVForFA: interleaved queries, keys and values (s, b, a, d), views
 * of one tensor, to views of another, each dense with the batch before the
 * sequence. @p qkv  given; then the results
 */
void me_te_prepare_for_flash(me_engine *e, me_tensor *qkv[3]);

/** `F.pad(x, (0, n))` of a head's columns: (s, b, a, d) to (s, b, a, d + n). */
me_tensor *me_pad_heads(me_engine *e, me_tensor *x, uint64_t n);

#endif /* MEMEST_OPS_FLASH_ATTN_H */
