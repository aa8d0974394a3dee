/**
 * @file
 * In which order the ranks of a pipeline run forwards and backwards, by the
 * name of a schedule or from a file of PyTorch's form.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCHEDULE_H
#define MEMEST_SCHEDULE_H

#include "memest/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The schedules: name, PyTorch's class or NULL, one phrase. All static; NULL
 *  beyond the last. */
MEMEST_API const char *memest_schedule_name(size_t index);
MEMEST_API const char *memest_schedule_torch_name(size_t index);
MEMEST_API const char *memest_schedule_summary(size_t index);

/** A pipeline, and what it has to do. */
typedef struct memest_pipeline {
    size_t struct_size;
    int32_t ranks; /**< at least 1 */
    int32_t microbatches;
    int32_t chunks;       /**< stages of each rank; 0: as few as the schedule
                             takes */
    int32_t group_size;   /**< interleaved: micro-batches that a chunk runs in a
                             row; 0: as many as there are ranks */
    int32_t memory_limit; /**< zb_auto, v_auto: chunk micro-batches that a rank
                               may hold; 0: as 1f1b */
} memest_pipeline;

/** The order of all ranks. */
typedef struct memest_order memest_order;

/**
 * The order of a schedule.
 *
 * @param schedule   memest's name or PyTorch's, in any case
 * @param order_out  owned by the caller
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for an unknown name, with those that
 *         there are, or numbers that the schedule cannot run;
 *         MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_order_create(
    const char *schedule, const memest_pipeline *pipeline,
    memest_order **order_out, memest_error *error) MEMEST_MUST_CHECK;

/**
 * The order in a file: a row a rank, cells as `2F0`.
 *
 * @return MEMEST_OK; MEMEST_ERR_IO, MEMEST_ERR_SYNTAX, MEMEST_ERR_CONFIG for
 *         actions that are missing, twice or on the wrong rank;
 *         MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_order_read_file(const char *path, memest_order **order_out,
                       memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. */
MEMEST_API void memest_order_destroy(memest_order *order);

MEMEST_API int32_t memest_order_ranks(const memest_order *order);
MEMEST_API int32_t memest_order_stages(const memest_order *order);
MEMEST_API int32_t memest_order_microbatches(const memest_order *order);

/** The rank that a stage is on; -1: no such stage. */
MEMEST_API int32_t memest_order_rank_of_stage(const memest_order *order,
                                              int32_t stage);

/** One thing that a rank does. */
typedef struct memest_action {
    size_t struct_size;
    const char *kind;   /**< as PyTorch's files have it: "F", "B" whole
                             backward, "I" input gradient, "W" weight gradient,
                             "SEND_F", …; static */
    int32_t stage;      /**< of the pipeline */
    int32_t chunk;      /**< of the rank: its stages from 0 */
    int32_t microbatch; /**< -1: of none */
    bool is_overlapped; /**< a forward that runs as one block with the backward
                             behind it */
} memest_action;

/** What a rank does, in order; 0 and false for what there is not. */
MEMEST_API size_t memest_order_n_actions(const memest_order *order,
                                         int32_t rank);
MEMEST_API bool memest_order_action(const memest_order *order, int32_t rank,
                                    size_t index, memest_action *action_out);

/** Chunk micro-batches that a rank holds activations of at most; 0 for no such
 *  rank. */
MEMEST_API int32_t memest_order_in_flight(const memest_order *order,
                                          int32_t rank);

/** The course of an order in time, in the unit of its durations. */
typedef struct memest_course {
    size_t struct_size;
    int64_t makespan; /**< the last end of all */
    int64_t bubble;   /**< of it, less the busiest rank's work */
} memest_course;

/**
 * Run an order.
 *
 * @param durations   "F=1,I=1,W=1,B=2,comm=0", any of them; NULL: these
 * @param course_out  filled in
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for ranks that wait for each other for
 *         ever, with the cycle, or durations that cannot be read;
 *         MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_order_run(
    const memest_order *order, const char *durations, memest_course *course_out,
    memest_error *error) MEMEST_MUST_CHECK;

/**
 * The order as a file that PyTorch and memest read.
 *
 * @param text_out  ends with a NUL; owned by the caller, for
 *                  memest_text_destroy()
 * @return MEMEST_OK, MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_order_text(const memest_order *order,
                                           char **text_out, memest_error *error)
    MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_SCHEDULE_H */
