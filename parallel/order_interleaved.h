/**
 * @file
 * The interleaved schedule: which micro-batch and chunk each virtual step runs
 * and which tensors a rank receives when, as Megatron-LM core_v0.19.0 has it
 * (forward_backward_pipelining_with_interleaving() of schedules.py).
 *
 * A rank has microbatches x chunks virtual steps in each direction. The n-th
 * forward runs virtual step n, the n-th backward virtual step n; the order of
 * forwards and backwards among each other is that of the schedule
 * "interleaved". Pipelines here must have passed its me_schedule_check().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_ORDER_INTERLEAVED_H
#define MEMEST_PARALLEL_ORDER_INTERLEAVED_H

#include "parallel/schedule.h"

#include <stdbool.h>
#include <stdint.h>

/** What a virtual step runs. */
typedef struct me_virtual_step {
    int32_t microbatch;
    int32_t chunk;
} me_virtual_step;

/** Whether a tensor is received, and for which chunk of the rank. */
typedef struct me_receive {
    bool is_expected;
    int32_t chunk; /**< meaningless if none is expected */
} me_receive;

/** Virtual steps in each direction: microbatches x chunks. */
int32_t me_interleaved_steps(const me_pipeline *pipeline);

/** Forwards before the first backward's pair; at most all steps. */
int32_t me_interleaved_warmup(const me_pipeline *pipeline);

/** What forward or backward @p step, 0 to steps - 1, runs. Cost: O(1). */
me_virtual_step me_interleaved_step(const me_pipeline *pipeline, int32_t step,
                                    bool is_forward);

/**
 * What a rank receives right after a virtual step: after a forward the input
 * of a later forward from the rank before, after a backward the output
 * gradient of a later backward from the rank after. Tensors received for a
 * chunk are used up by its steps in the order in which they came. Cost: O(1).
 *
 * @param step  0 to steps - 1; -1: what it receives before the first step of
 *              that direction. The first gradient comes after the last warm-up
 *              forward, or before the cool-down if warm-up is all there is.
 */
me_receive me_interleaved_receive(const me_pipeline *pipeline, int32_t step,
                                  bool is_forward);

/**
 * With overlapped reduction: the chunk whose gradients begin to be reduced
 * after a backward, once its last micro-batch is done. Rank r does so r steps
 * late, so that the pipeline's ranks begin together; chunks that are not
 * reached within the steps are reduced after them. Cost: O(1).
 *
 * @param step  backward, 0 to steps - 1
 * @return the chunk, or -1: none
 */
int32_t me_interleaved_reduced_chunk(const me_pipeline *pipeline, int32_t step);

#endif /* MEMEST_PARALLEL_ORDER_INTERLEAVED_H */
