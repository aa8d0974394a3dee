/**
 * @file
 * One run over the tape: which nodes it will visit, what each of them awaits,
 * and those that are ready. Runs nest (recomputation runs one inside another).
 * For the files of src/tensor alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_BACKWARD_RUN_H
#define MEMEST_TENSOR_BACKWARD_RUN_H

#include "tensor/autograd.h"

/** A run's share of the tape's lists; made by me_run_begin(). */
typedef struct me_run {
    uint64_t task;
    uint32_t first_slot;
    uint32_t first_ready; /**< where this run's heap begins */
    bool retains_graph;
    bool is_partial; /**< only paths to what was asked for run */
    bool makes_all;  /**< but nodes on them make all gradients */
} me_run;

/** A run that has visited nothing. */
me_run me_run_begin(me_engine *e);

/** Count for every node that can be reached from @p root how many gradients it
 *  awaits; nodes of earlier roots are not counted again. */
void me_run_count(me_engine *e, const me_run *r, me_node *root);

/** Mark @p inputs that were reached, and all nodes on a path to one. */
void me_run_mark(me_engine *e, const me_run *r, uint32_t count,
                 me_node *const *inputs);

/** A node has all its gradients. */
void me_run_push(me_engine *e, const me_run *r, me_node *node);

/** The ready node that runs first. There is one. */
me_node *me_run_pop(me_engine *e, const me_run *r);

/** Forget the run; after a failure gradients may still wait in it. */
void me_run_finish(me_engine *e, const me_run *r);

#endif /* MEMEST_TENSOR_BACKWARD_RUN_H */
