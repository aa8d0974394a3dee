/**
 * @file
 * Matrix products, and cuBLAS's workspace, which PyTorch takes from its
 * allocator right after the output of a host thread's first product and never
 * gives back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_MATMUL_H
#define MEMEST_OPS_MATMUL_H

#include "tensor/launch.h"
#include "tensor/tensor.h"

/**
 * A product into a new tensor, off the tape: what custom functions call.
 *
 * @param kernel  one of products, whose name the allocation has; bmm is one
 *                product for each index of the first dimension
 * @param shape  of the result
 * @param inner  length of the summed dimension; gives the FLOPs
 */
me_tensor *me_gemm(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                   me_shape shape, uint64_t inner);

/** A product into @p y, which exists already; the workspace comes first. */
void me_gemm_run(me_engine *e, me_kernel_class kernel, const me_tensor *y,
                 uint64_t inner);

/** cuBLASLt's workspace of the running host thread, at its first product with
 *  a bias. */
void me_lt_workspace(me_engine *e);

/** `torch.bmm(a, b)`: (n, p, q) · (n, q, r) to (n, p, r). */
me_tensor *me_bmm(me_engine *e, me_tensor *a, me_tensor *b);

/** `torch.baddbmm(unused, a, b, beta=0, alpha)`: as bmm, but each gradient is
 *  a product and then that times alpha. */
me_tensor *me_baddbmm(me_engine *e, me_tensor *a, me_tensor *b);

#endif /* MEMEST_OPS_MATMUL_H */
