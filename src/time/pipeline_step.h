/**
 * @file
 * One training step of a pipeline: the programs of its stages run against each
 * other, each on its own clocks, and meet where they send, receive and reduce.
 *
 * One rank stands for its stage: ranks that share layers or batches are taken
 * to run alike.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_PIPELINE_STEP_H
#define MEMEST_TIME_PIPELINE_STEP_H

#include "time/clock_program.h"

/** An action of a stage, for a timeline to be drawn from. */
typedef struct me_time_span {
    uint8_t part; /**< forward or backward */
    int32_t chunk;
    int32_t microbatch;
    int64_t start_ns;
    int64_t end_ns;
} me_time_span;

/** A stage's step. The five parts add up to the step. */
typedef struct me_time_stage {
    int64_t compute_ns;   /**< kernels of forwards and backwards */
    int64_t exposed_ns;   /**< collectives while no kernel could run */
    int64_t transfer_ns;  /**< idle for what other stages send or take */
    int64_t host_ns;      /**< idle for the host to launch */
    int64_t optimizer_ns; /**< from the last gradient to the end of the step */
    int64_t busy_ns;      /**< forwards and backwards, from start to end */
    int64_t idle_ns;      /**< of the time that forwards and backwards of all
                               stages take */
    int64_t host_busy_ns; /**< all that the host does in the step */
    int64_t card_busy_ns; /**< all kernels and collectives of the step */
    me_time_span *spans;  /**< owned */
    uint32_t n_spans;
} me_time_stage;

/** The step. */
typedef struct me_step_time {
    int32_t n_stages;
    me_time_stage *stages; /**< owned */
    int64_t step_ns;
    int64_t forward_backward_ns; /**< until the last backward of all ends */
    int64_t bubble_ns; /**< of that, less the busiest stage's busy time: lost
                                 where the optimizer waits for all */
    int64_t span_bubble_ns; /**< largest of a stage's own end less its own start
                                 and busy time: as zero-bubble papers give it */
} me_step_time;

/**
 * Run a step.
 *
 * @param programs  one for each stage, in their order; borrowed
 * @param step_out  to be given back with me_step_time_destroy()
 * @return ME_OK; ME_ERR_MISMATCH if stages wait for each other for ever;
 *         ME_ERR_NOMEM
 */
me_status me_step_time_create(const me_time_program *programs, int32_t n_stages,
                              me_diag *diag,
                              me_step_time **step_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. */
void me_step_time_destroy(me_step_time *step);

#endif /* MEMEST_TIME_PIPELINE_STEP_H */
