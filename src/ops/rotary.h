/**
 * @file
 * Rotary embeddings as products of complex numbers, which is how Llama's own
 * code and torchtitan write them: pairs of a head's elements are one number
 * (aten/native/ComplexHelper.h, BinaryMulKernel.cu).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_ROTARY_H
#define MEMEST_OPS_ROTARY_H

#include "tensor/tensor.h"

/**
 * `apply_rotary_emb(xq, xk, freqs_cis)`: both in float32, times freqs_cis, and
 * back to their types.
 *
 * @param x        (b, s, heads, d) each
 * @param out_out  of the same shapes
 */
void me_apply_rotary_emb(me_engine *e, me_tensor *const x[2],
                         me_tensor *out_out[2]);

#endif /* MEMEST_OPS_ROTARY_H */
