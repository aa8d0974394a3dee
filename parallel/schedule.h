/**
 * @file
 * In which order a pipeline rank runs forwards and backwards.
 *
 * A schedule is a row of a table: a name, what it asks of the pipeline, and
 * the order. To add one, write one file order_NAME.c and one line of orders.h.
 * Orders are those that the frameworks execute; communication is not listed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SCHEDULE_H
#define MEMEST_PARALLEL_SCHEDULE_H

#include "memest/status.h"

#include <stdint.h>

/** X(constant, letter, name): what an action computes for one chunk. */
#define ME_ACTION_LIST(X)                                                      \
    X(ME_ACTION_FORWARD, "F", "forward")                                       \
    X(ME_ACTION_BACKWARD, "B", "backward")                                     \
    X(ME_ACTION_INPUT_GRADIENT, "I", "input gradient")                         \
    X(ME_ACTION_WEIGHT_GRADIENT, "W", "weight gradient")

typedef enum me_action_kind {
#define ME_ACTION_ENUM(constant, letter, name) constant,
    ME_ACTION_LIST(ME_ACTION_ENUM)
#undef ME_ACTION_ENUM
    ME_ACTION_COUNT
} me_action_kind;

/** Where in the order an action is. */
typedef enum me_action_phase {
    ME_ACTION_WARMUP,  /**< forwards only, filling the pipeline */
    ME_ACTION_STEADY,  /**< forwards and backwards in turn */
    ME_ACTION_COOLDOWN /**< backwards only, draining the pipeline */
} me_action_phase;

/** One thing that a rank does. */
typedef struct me_action {
    uint8_t kind;       /**< me_action_kind */
    uint8_t phase;      /**< me_action_phase */
    int32_t chunk;      /**< of this rank, from 0 */
    int32_t microbatch; /**< from 0 */
} me_action;

/** A rank's place in a pipeline, and what the pipeline has to do. */
typedef struct me_pipeline {
    int32_t ranks; /**< of the pipeline, at least 1 */
    int32_t rank;  /**< this one, 0 to ranks - 1 */
    int32_t microbatches;
    int32_t chunks;     /**< of each rank, at least 1 */
    int32_t group_size; /**< interleaved: micro-batches that a chunk runs in a
                             row; 0: as many as there are ranks */
} me_pipeline;

/** A kind of order. Rows of one table, static. */
typedef struct me_schedule {
    const char *name;    /**< "1f1b" */
    const char *summary; /**< one phrase */
    /** Can it run this pipeline? The pipeline is known to make sense. */
    me_status (*check)(const me_pipeline *pipeline, me_diag *diag);
    /** Number of actions of the rank. */
    int32_t (*count)(const me_pipeline *pipeline);
    /** Write the rank's actions, as many as `count` says. */
    void (*list)(const me_pipeline *pipeline, me_action *actions);
    /** Chunk micro-batches in flight at most, in closed form. */
    int32_t (*in_flight)(const me_pipeline *pipeline);
} me_schedule;

/** What a rank does, in order; the array belongs to it. */
typedef struct me_actions {
    me_action *items;
    int32_t count;
} me_actions;

/** The schedule of a name; static; NULL if there is none. */
const me_schedule *me_schedule_find(const char *name);

/** The schedules by index, NULL beyond the last; static. */
const me_schedule *me_schedule_at(uint32_t index);

/** One letter; static. */
const char *me_action_letter(me_action_kind kind);

/**
 * Can a schedule run a pipeline?
 *
 * @return ME_OK; ME_ERR_CONFIG with the numbers that don't fit
 */
me_status me_schedule_check(const me_schedule *schedule,
                            const me_pipeline *pipeline,
                            me_diag *diag) ME_MUST_CHECK;

/**
 * How many chunk micro-batches a rank holds activations of at most: those
 * whose forward has begun and whose (weight) backward has not ended. The
 * pipeline must have passed me_schedule_check().
 */
int32_t me_schedule_in_flight(const me_schedule *schedule,
                              const me_pipeline *pipeline);

/**
 * The actions of one rank. Cost: O(actions), whatever the other ranks do.
 *
 * @param diag         filled in on failure
 * @param actions_out  to be destroyed by the caller
 * @return ME_OK, ME_ERR_NOMEM; ME_ERR_CONFIG as me_schedule_check()
 */
me_status me_actions_create(const me_schedule *schedule,
                            const me_pipeline *pipeline, me_diag *diag,
                            me_actions **actions_out) ME_MUST_CHECK;

/** Give back actions; NULL is allowed. */
void me_actions_destroy(me_actions *actions);

/** me_schedule_in_flight(), counted from the actions themselves. */
int32_t me_actions_in_flight(const me_actions *actions);

#endif /* MEMEST_PARALLEL_SCHEDULE_H */
