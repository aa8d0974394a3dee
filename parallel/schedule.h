/**
 * @file
 * In which order a pipeline rank runs forwards and backwards.
 *
 * A schedule is a row of a table: a name, what it asks of the pipeline, where
 * the stages of the model stand, and the order. To add one, write one file
 * order_NAME.c and one line of orders.h. Communication is not listed: it
 * follows from the order (parallel/schedule_lower.h). How long an order takes
 * is parallel/timeline.h, the orders of all ranks parallel/pipeline_order.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SCHEDULE_H
#define MEMEST_PARALLEL_SCHEDULE_H

#include "base/status.h"
#include "parallel/placement.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * X(constant, text, name): what an action does for one chunk; the text is that
 * of PyTorch's schedule files. A zero-bubble paper's B is I here.
 */
#define ME_ACTION_LIST(X)                                                      \
    X(ME_ACTION_FORWARD, "F", "forward")                                       \
    X(ME_ACTION_BACKWARD, "B", "backward")                                     \
    X(ME_ACTION_INPUT_GRADIENT, "I", "input gradient")                         \
    X(ME_ACTION_WEIGHT_GRADIENT, "W", "weight gradient")                       \
    X(ME_ACTION_SEND_FORWARD, "SEND_F", "send of an output")                   \
    X(ME_ACTION_RECV_FORWARD, "RECV_F", "receive of an input")                 \
    X(ME_ACTION_SEND_BACKWARD, "SEND_B", "send of an input's gradient")        \
    X(ME_ACTION_RECV_BACKWARD, "RECV_B", "receive of an output's gradient")    \
    X(ME_ACTION_UNSHARD, "UNSHARD", "all-gather of a stage's parameters")      \
    X(ME_ACTION_RESHARD, "RESHARD", "release of gathered parameters")          \
    X(ME_ACTION_REDUCE_GRAD, "REDUCE_GRAD", "reduction of a stage's gradients")

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
    bool is_overlapped; /**< a forward: runs as one block with the backward
                             that stands behind it (PyTorch: OVERLAP_F_B) */
    bool is_batched;    /**< a send or receive: one batch with the one that
                             stands behind it, all wait for all */
    int32_t chunk;      /**< of this rank, from 0 */
    int32_t stage;      /**< of the pipeline, see parallel/placement.h */
    int32_t microbatch; /**< from 0; of actions on parameters meaningless */
} me_action;

/** A rank's place in a pipeline, and what the pipeline has to do. */
typedef struct me_pipeline {
    int32_t ranks; /**< of the pipeline, at least 1 */
    int32_t rank;  /**< this one, 0 to ranks - 1 */
    int32_t microbatches;
    int32_t chunks;       /**< of each rank, at least 1 */
    int32_t group_size;   /**< interleaved: micro-batches that a chunk runs in a
                               row; 0: as many as there are ranks */
    int32_t extra_warmup; /**< interleaved: forwards more before the first
                               backward, 1 with Megatron's
                               overlap_moe_expert_parallel_comm */
    int32_t memory_limit; /**< zb_auto, v_auto: chunk micro-batches that a rank
                               may hold; 0: ranks x chunks, as 1f1b */
} me_pipeline;

/**
 * What a rank does, in order. Filled by me_actions_push(); a failure sticks in
 * `status`.
 */
typedef struct me_actions {
    me_action *items; /**< owned */
    int32_t count;
    uint32_t capacity;
    me_status status;
} me_actions;

/** A kind of order. Rows of one table, static; every member is there unless it
 *  says otherwise. */
typedef struct me_schedule {
    const char *name;       /**< "1f1b" */
    const char *torch_name; /**< PyTorch's class, "Schedule1F1B"; or NULL */
    const char *summary;    /**< one phrase */
    me_placement placement; /**< of the stages on the ranks */
    /** Can it run this pipeline? The pipeline is known to make sense. */
    me_status (*check)(const me_pipeline *pipeline, me_diag *diag);
    /** Push the rank's actions; NULL where `list_all` does. Of an action kind,
     *  chunk and micro-batch, and whether it is overlapped, are asked for. */
    void (*list)(const me_pipeline *pipeline, me_actions *actions);
    /** Push the actions of all ranks, `ranks` lists; for orders that are found
     *  by a search. */
    me_status (*list_all)(const me_pipeline *pipeline, me_actions *ranks);
    /** Chunk micro-batches in flight at most, in closed form. */
    int32_t (*in_flight)(const me_pipeline *pipeline);
    bool is_bound; /**< in flight may be fewer than the closed form */
} me_schedule;

/** The schedule of a name, memest's or PyTorch's, in any case and with or
 *  without `-` and `_`; static; NULL if there is none. */
const me_schedule *me_schedule_find(const char *name);

/** The schedules by index, NULL beyond the last; static. */
const me_schedule *me_schedule_at(uint32_t index);

/** The text of PyTorch's files, one letter for what computes; static. */
const char *me_action_letter(me_action_kind kind);

/** Is it F, B, I or W? */
static inline bool me_action_computes(me_action_kind kind)
{
    return kind <= ME_ACTION_WEIGHT_GRADIENT;
}

/** Is it about parameters, so that it has no micro-batch? */
static inline bool me_action_is_of_parameters(me_action_kind kind)
{
    return kind >= ME_ACTION_UNSHARD;
}

/** Is it a send or a receive? */
static inline bool me_action_transfers(me_action_kind kind)
{
    return !me_action_computes(kind) && !me_action_is_of_parameters(kind);
}

/**
 * Can a schedule run a pipeline?
 *
 * @return ME_OK; ME_ERR_CONFIG with the numbers that don't fit
 */
me_status me_schedule_check(const me_schedule *schedule,
                            const me_pipeline *pipeline,
                            me_diag *diag) ME_MUST_CHECK;

/** Chunks of each rank for a pipeline that does not say how many (0): 1, or 2
 *  if the schedule cannot run 1. */
int32_t me_schedule_chunks(const me_schedule *schedule,
                           const me_pipeline *pipeline);

/**
 * How many chunk micro-batches a rank holds activations of at most: those
 * whose forward has begun and whose (weight) backward has not ended. The
 * pipeline must have passed me_schedule_check(). Of a row that `is_bound` the
 * rank may hold fewer.
 */
int32_t me_schedule_in_flight(const me_schedule *schedule,
                              const me_pipeline *pipeline);

/**
 * The actions of one rank. Cost: O(actions), whatever the other ranks do; but
 * for rows with `list_all`, which find all ranks' orders.
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

/** Append one action; a failure is kept in `status`, and later calls do
 *  nothing. */
void me_actions_push(me_actions *actions, me_action action);

/** Give back the list of actions in the caller's own memory. */
void me_actions_fini(me_actions *actions);

/** me_schedule_in_flight(), counted from the actions themselves. */
int32_t me_actions_in_flight(const me_actions *actions);

/**
 * What a rank holds at most while it runs its actions, in chunk micro-batches;
 * no timing matters. In an overlapped block the forward counts before the
 * backward lets go, as in DualPipe's published P + 1.
 */
typedef struct me_action_peaks {
    int32_t full;       /**< +1 at F, −1 at B and W: all is kept until W */
    int32_t activation; /**< +1 at F, −1 at B and I: what I needs */
    int32_t pending_w;  /**< +1 at I, −1 at W: what only W still needs */
    int32_t half;       /**< of 2 activation + pending_w at one time: halves */
    int32_t forwards_first; /**< forwards before the first B or I */
} me_action_peaks;

/** Count them. */
me_action_peaks me_actions_peaks(const me_actions *actions);

#endif /* MEMEST_PARALLEL_SCHEDULE_H */
