/**
 * @file
 * `torch.nn.functional.linear` as PyTorch's own layers run it: views, a matrix
 * product on the tape, and the workspaces of cuBLAS and cuBLASLt
 * (aten/native/Linear.cpp, derivatives.yaml).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_FUNCTIONAL_LINEAR_H
#define MEMEST_OPS_FUNCTIONAL_LINEAR_H

#include "tensor/tensor.h"

/**
 * `x · weightᵀ + bias`: (…, in) to (…, out).
 *
 * @param x       contiguous, two dimensions or more
 * @param weight  (out, in)
 * @param bias    (out), or NULL
 */
me_tensor *me_functional_linear(me_engine *e, me_tensor *x, me_tensor *weight,
                                me_tensor *bias);

#endif /* MEMEST_OPS_FUNCTIONAL_LINEAR_H */
