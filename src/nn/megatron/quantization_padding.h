/**
 * @file
 * Rows of experts, each expert's up to a multiple that quantised products take:
 * Transformer Engine's Fp8Padding and Fp8Unpadding of grouped experts, and
 * SequentialMLP._pad_tensor_for_quantization() (core/transformer/moe/
 * experts.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_QUANTIZATION_PADDING_H
#define MEMEST_NN_MEGATRON_QUANTIZATION_PADDING_H

#include "nn/nn.h"

/** Do grouped experts pad their rows? Not without FP8, and not where the router
 *  or the dispatcher has (skip_routed_expert_padding()). */
bool me_experts_pad(const me_nn *nn);

/**
 * Each expert's rows up to the multiple.
 *
 * @param tokens      rows of each expert
 * @param padded_out  rows that each has then
 * @return their sum
 */
uint64_t me_padded_counts(const me_nn *nn, uint32_t count,
                          const uint64_t *tokens, uint64_t *padded_out);

/** Fp8Padding or Fp8Unpadding: (n, h) to (@p rows, h); @p x itself if it has as
 *  many. */
me_tensor *me_change_padding(me_nn *nn, me_tensor *x, uint64_t rows);

/** _pad_tensor_for_quantization(): zeros behind (n, …) up to the multiple. */
me_tensor *me_pad_with_zeros(me_nn *nn, me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_QUANTIZATION_PADDING_H */
