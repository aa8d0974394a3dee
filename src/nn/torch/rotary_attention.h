/**
 * @file
 * The attention of Llama as its own code and torchtitan's write it, between the
 * projections (torchtitan/models/llama/model.py, Attention.forward): rotary
 * embeddings, keys and values repeated for every query head, PyTorch's scaled
 * dot-product attention.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_ROTARY_ATTENTION_H
#define MEMEST_NN_TORCH_ROTARY_ATTENTION_H

#include "nn/nn.h"

/**
 * Run it. What the projections made are variables of the running frame, which
 * lose their names as Attention.forward binds them anew; queries, keys and
 * values stay until that frame is left, as its variables do.
 *
 * @param projected  (b, s, a d) and twice (b, s, g d)
 * @param head_size  d
 * @param repeats    repeat_kv(); else the kernel is given fewer heads of keys
 *                   and values (enable_gqa)
 * @return (b, s, a d)
 */
me_tensor *me_rotary_attention(me_nn *nn, me_tensor *const projected[3],
                               uint64_t head_size, bool repeats);

#endif /* MEMEST_NN_TORCH_ROTARY_ATTENTION_H */
