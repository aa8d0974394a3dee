/**
 * @file
 * `scaled_dot_product_attention` with the kernels that PyTorch itself chooses:
 * memory-efficient attention for float32, cuDNN's for 16-bit types on Hopper
 * (aten/native/transformers/cuda/attention.cu, cudnn/MHA.cpp). The flash
 * kernel, which jobs force, is ops/flash_attention.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_SDPA_H
#define MEMEST_OPS_SDPA_H

#include "tensor/tensor.h"

/**
 * Attention of heads: (b, a, s, d) to (b, a, s, d) in the memory order of
 * @p query. Dropout takes no tensor of its own in either kernel.
 *
 * @param key  as @p value, with as many heads as @p query
 */
me_tensor *me_sdpa(me_engine *e, me_tensor *query, me_tensor *key,
                   me_tensor *value);

#endif /* MEMEST_OPS_SDPA_H */
