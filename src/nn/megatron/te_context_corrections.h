/**
 * @file
 * What joins the steps of Transformer Engine's ring of context parallelism:
 * functions of torch.compile (attention/dot_product_attention/
 * context_parallel.py). Each is compiled where it is first called; on the stream
 * of a step its kernels are timed on that stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_CONTEXT_CORRECTIONS_H
#define MEMEST_NN_MEGATRON_TE_CONTEXT_CORRECTIONS_H

#include "nn/nn.h"
#include "ops/te_fused_attention.h"

/** Are Transformer Engine's own functions compiled (its jit_fuser())? */
bool me_te_compiles(const me_nn *nn);

/**
 * flash_attn_fwd_softmax_lse_correction(), on the running stream.
 *
 * @param statistics  of the steps so far, float32 (b, a, z): written to
 * @param of_step     float32 (b, a, z), or of the second half of the rows
 * @param is_half     flash_attn_fwd_second_half_softmax_lse_correction()
 */
void me_te_correct_statistics(me_nn *nn, const me_tensor *statistics,
                              const me_tensor *of_step, bool is_half);

/**
 * flash_attn_fwd_out_correction_init() of the first step.
 *
 * @return (z, b, a, u): the first step's output in the sum
 */
me_tensor *me_te_begin_output(me_nn *nn, const me_te_attention_made *of_step);

/**
 * flash_attn_fwd_out_correction() of a later step.
 *
 * @param y        the sum: written to
 * @param is_half  flash_attn_fwd_second_half_out_correction()
 */
void me_te_correct_output(me_nn *nn, const me_tensor *y,
                          const me_te_attention_made *of_step, bool is_half);

#endif /* MEMEST_NN_MEGATRON_TE_CONTEXT_CORRECTIONS_H */
