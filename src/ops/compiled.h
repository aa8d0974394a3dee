/**
 * @file
 * What torch.compile's functions do when they run for the first time: the
 * kernels that Inductor made are timed with each of their configurations, and
 * a timing takes a buffer as large as the L2 cache to flush it
 * (torch/_inductor/runtime/benchmarking.py). The buffers are gone at once, but
 * the allocator keeps a segment for them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_COMPILED_H
#define MEMEST_OPS_COMPILED_H

#include "tensor/tensor.h"

/** The element-wise kernels of the compiled functions. Reductions of dense rows
 *  have one configuration and are not timed. */
typedef enum me_compiled_kernel {
    ME_COMPILED_SQUARED_RELU,
    ME_COMPILED_SQUARED_RELU_BACKWARD,
    ME_COMPILED_BIAS_GELU,
    ME_COMPILED_BIAS_GELU_BACKWARD,
    ME_COMPILED_SWIGLU,
    ME_COMPILED_SWIGLU_BACKWARD,
    ME_COMPILED_WEIGHTED_SWIGLU,
    ME_COMPILED_WEIGHTED_SWIGLU_BACKWARD,
    ME_COMPILED_QUICK_GELU,
    ME_COMPILED_QUICK_GELU_BACKWARD,
    ME_COMPILED_OUTPUT_GATE,
    ME_COMPILED_OUTPUT_GATE_BACKWARD,
    ME_COMPILED_L2_NORM,
    ME_COMPILED_L2_NORM_BACKWARD,
    ME_COMPILED_BIAS_DROPOUT_ADD,
    ME_COMPILED_BIAS_DROPOUT_ADD_BACKWARD,
    ME_COMPILED_ADD_IN_PLACE,
    ME_COMPILED_LOSS_TARGET,
    ME_COMPILED_LOSS_JOIN,
    ME_COMPILED_LOSS_EXP,
    ME_COMPILED_LOSS,
    ME_COMPILED_LOSS_PROBABILITIES,
    ME_COMPILED_LOSS_BACKWARD,
    ME_COMPILED_LOSS_CAST,
    ME_COMPILED_ADAM_UPDATE,
    ME_COMPILED_RING_STATISTICS,
    ME_COMPILED_RING_HALF_STATISTICS,
    ME_COMPILED_RING_OUTPUT_INIT,
    ME_COMPILED_RING_OUTPUT,
    ME_COMPILED_RING_HALF_OUTPUT,
    ME_COMPILED_CHUNKS_BEFORE,
    ME_COMPILED_CHUNKS_AFTER,
    ME_COMPILED_KERNELS
} me_compiled_kernel;

/**
 * A kernel runs, its outputs exist. The first time it is timed.
 *
 * @param input  whose strides the function was compiled for: with others it
 *               is compiled once more, for any; NULL: they never change
 */
void me_compiled_run(me_engine *e, me_compiled_kernel kernel,
                     const me_tensor *input);

/**
 * As me_compiled_run() for a function whose inputs have now these, now those
 * rows: it is compiled for the first number, then for any, and once more for a
 * single row, which torch.compile never takes for any; for none it does not run.
 */
void me_compiled_run_rows(me_engine *e, me_compiled_kernel kernel,
                          uint64_t rows);

/** As me_compiled_run() for a kernel that writes to @p changed, of which every
 *  timed run gets a copy. */
void me_compiled_run_in_place(me_engine *e, me_compiled_kernel kernel,
                              const me_tensor *changed);

/** As that for a kernel that has @p changed twice, to read and to write, and so
 *  gets two copies. */
void me_compiled_run_updating(me_engine *e, me_compiled_kernel kernel,
                              const me_tensor *input, const me_tensor *changed);

/**
 * As me_compiled_run() for a function of sizes and numbers that torch.compile
 * takes for constants until they change: it is compiled for the first ones, then
 * for any of those that have changed so far (its automatic dynamic shapes).
 *
 * @param numbers    ME_COMPILED_NUMBERS of them
 * @param changed    shape of each tensor that it writes to
 * @param n_changed  of which every timed run gets copies
 */
void me_compiled_run_numbers(me_engine *e, me_compiled_kernel kernel,
                             const uint64_t *numbers, const me_tensor *changed,
                             int n_changed);

enum {
    ME_COMPILED_NUMBERS = 3
};

#endif /* MEMEST_OPS_COMPILED_H */
