/**
 * @file
 * Reductions, and the global memory that PyTorch's reduction kernel asks for
 * when one block of threads is not enough (aten/native/cuda/Reduce.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_REDUCE_H
#define MEMEST_OPS_REDUCE_H

#include "tensor/tensor.h"

/** One call of the reduction kernel. */
typedef struct me_reduction {
    uint64_t inputs; /**< elements that go into each output */
    uint64_t outputs;
    bool is_outer;          /**< rows are reduced; else the inner dimension */
    uint64_t element_bytes; /**< of the input */
    uint64_t accumulator_bytes; /**< of one partial result: 4, of int64 8, 16
                                     with an index */
    bool is_expanded;           /**< the input is one number shown as many */
    bool is_pair; /**< a partial result is two numbers, which the output
                           cannot hold */
} me_reduction;

/** Staging buffer and semaphores of a reduction; both 0 if it needs none. */
typedef struct me_reduction_scratch {
    uint64_t staging_bytes;
    uint64_t semaphore_bytes;
} me_reduction_scratch;

/**
 * What a reduction that fits 32-bit indexing asks for; the thread-block
 * arithmetic of Reduce.cuh's setReduceConfig.
 */
me_reduction_scratch me_reduction_scratch_of(const me_card *card,
                                             const me_reduction *reduction);

/** Ask for and give back what @p reduction needs, half by half if the input
 *  is beyond 32-bit indexing. The output exists already. */
void me_reduce(me_engine *e, const me_reduction *reduction);

/** As me_reduce() of @p x to @p outputs numbers, each of neighbours in memory. */
void me_reduce_to(me_engine *e, const me_tensor *x, uint64_t outputs,
                  uint64_t accumulator_bytes);

/** Sum a gradient to a broadcast input's shape; the tape's me_sum_to_function. */
me_tensor *me_sum_to(me_engine *e, me_tensor *gradient, const me_shape *shape);

/** `x.sum()`: a scalar, on the tape. */
me_tensor *me_sum(me_engine *e, me_tensor *x);

/** Ask for and give back what summing all of @p x needs. */
void me_reduce_all(me_engine *e, const me_tensor *x);

/** `x.sum()`, off the tape: a scalar, int64 of whole numbers. */
me_tensor *me_sum_detached(me_engine *e, const me_tensor *x);

/** `x.sum(dim=0)`: (n, m) to (m), on the tape. */
me_tensor *me_sum_rows(me_engine *e, me_tensor *x);

/** `x.mean()`: a scalar, on the tape. */
me_tensor *me_mean(me_engine *e, me_tensor *x);

/** The backward of a mean over dimensions that the input's shape remembers. */
void me_mean_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                      me_tensor **gx);

/** `x.mean(-1, keepdim=True)`: (…, n) to (…, 1), on the tape. */
me_tensor *me_mean_last(me_engine *e, me_tensor *x);

/** Sum over the last dimension, off the tape, in float32. */
me_tensor *me_sum_last_detached(me_engine *e, const me_tensor *x);

/** `torch.linalg.vector_norm(x)`: a scalar of @p dtype, off the tape. */
me_tensor *me_vector_norm(me_engine *e, const me_tensor *x, me_dtype dtype);

/** Install what the tape needs of the operations' layer. */
void me_ops_install(me_engine *e);

#endif /* MEMEST_OPS_REDUCE_H */
