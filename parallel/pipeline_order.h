/**
 * @file
 * What every rank of a pipeline does, in order: PyTorch's `pipeline_order`.
 *
 * It comes from a schedule of the table or from a file of the user's
 * (parallel/schedule_csv.h), with or without sends and receives
 * (parallel/schedule_lower.h), and is what a timeline runs
 * (parallel/timeline.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_PIPELINE_ORDER_H
#define MEMEST_PARALLEL_PIPELINE_ORDER_H

#include "base/str.h"
#include "parallel/schedule.h"

/** The lists of all ranks, and which stage stands where. */
typedef struct me_pipeline_order {
    int32_t n_ranks;
    int32_t n_chunks; /**< of each rank; in a file of the user's: at most */
    int32_t n_microbatches;
    int32_t n_stages;
    me_placement placement;
    int32_t *rank_of_stage; /**< n_stages of them; owned */
    me_actions *ranks;      /**< n_ranks of them; owned */
} me_pipeline_order;

/**
 * The order of all ranks of a schedule.
 *
 * @param pipeline   its rank does not matter
 * @param order_out  to be destroyed by the caller
 * @return as me_actions_create()
 */
me_status me_pipeline_order_create(const me_schedule *schedule,
                                   const me_pipeline *pipeline, me_diag *diag,
                                   me_pipeline_order **order_out) ME_MUST_CHECK;

/**
 * An order without actions, its stages placed as the schedule's are; whoever
 * asked fills `ranks`.
 *
 * @param rank_of_stage  n_stages of them, copied; NULL: by the placement
 * @return the order, owned by the caller; NULL: no host memory
 */
me_pipeline_order *me_pipeline_order_new(const me_pipeline *pipeline,
                                         me_placement placement,
                                         int32_t n_stages,
                                         const int32_t *rank_of_stage);

/** Give each action the stage of its chunk; the placement must be known. */
void me_pipeline_order_name_stages(me_pipeline_order *order);

/** Give back an order; NULL is allowed. */
void me_pipeline_order_destroy(me_pipeline_order *order);

/** The first micro-batch of a stage's chain and, in *count_out, how many pass
 *  it: all, or of two directions half. */
int32_t me_pipeline_order_microbatches(const me_pipeline_order *order,
                                       int32_t stage, int32_t *count_out);

/**
 * Is everything there once, on its rank, and in an order that makes sense?
 * Every stage needs a forward of each of its micro-batches and a backward
 * after it, whole (B) or split (I, then W). Sends, receives and what is done
 * to parameters are not looked at.
 *
 * @return ME_OK; ME_ERR_CONFIG with rank and action; ME_ERR_NOMEM
 */
me_status me_pipeline_order_check(const me_pipeline_order *order,
                                  me_diag *diag) ME_MUST_CHECK;

/** Are there sends or receives? */
bool me_pipeline_order_has_transfers(const me_pipeline_order *order);

/** Does each rank hold as many stages as any other? */
bool me_pipeline_order_is_even(const me_pipeline_order *order);

/** Is there an UNSHARD, RESHARD or REDUCE_GRAD? */
bool me_pipeline_order_has_work_on_parameters(const me_pipeline_order *order);

/**
 * Another order with the same actions.
 *
 * @param only_computes  without sends, receives and what is done to parameters
 * @param copy_out       to be destroyed by the caller
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_pipeline_order_copy(const me_pipeline_order *order,
                                 bool only_computes, me_diag *diag,
                                 me_pipeline_order **copy_out) ME_MUST_CHECK;

/** The action as PyTorch writes it: `3F0`, `1SEND_B2`, `0UNSHARD`. */
void me_action_write(const me_action *action, me_str *text);

/** An action that cannot stand where it does: "rank 2: 2B3 WHAT".
 *  @return ME_ERR_CONFIG */
me_status me_action_fail(me_diag *diag, int32_t rank, const me_action *action,
                         const char *what);

#endif /* MEMEST_PARALLEL_PIPELINE_ORDER_H */
