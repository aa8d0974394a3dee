/**
 * @file
 * Normalisation over the last dimension, as PyTorch's fused kernels do it
 * (aten/native/cuda/layer_norm_kernel.cu): (…, n) to (…, n), weights (n).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_LAYER_NORM_H
#define MEMEST_OPS_LAYER_NORM_H

#include "tensor/tensor.h"

/** `torch.nn.functional.layer_norm`; saves input, mean, 1/std and weights. */
me_tensor *me_layer_norm(me_engine *e, me_tensor *x, me_tensor *weight,
                         me_tensor *bias);

/** `torch.nn.functional.rms_norm`; saves input, 1/rms and weight. */
me_tensor *me_rms_norm(me_engine *e, me_tensor *x, me_tensor *weight);

#endif /* MEMEST_OPS_LAYER_NORM_H */
