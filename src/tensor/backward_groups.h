/**
 * @file
 * A backward in two halves, the input's gradient now and the weights' later:
 * torch/distributed/pipelining/_backward.py (PyTorch 2.11).
 *
 * Parameters are grouped by the nodes at which the way to them leaves the way
 * to the input: weight and bias of one layer at its node. The first half runs
 * the way to the input alone and keeps the graph and the gradients that come to
 * those nodes; the second runs backward from each of them to its parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_BACKWARD_GROUPS_H
#define MEMEST_TENSOR_BACKWARD_GROUPS_H

#include "tensor/autograd.h"

/** A node where the ways part, and what came to it. */
typedef struct me_intermediate {
    me_node *node;       /**< held until its group has its gradients */
    me_tensor *gradient; /**< of its output, held from the first half on */
    me_prehook prehook;
} me_intermediate;

/** Parameters that are reached through the same nodes. */
typedef struct me_parameter_group {
    uint32_t *parameters; /**< indices of the list that was split */
    uint32_t n_parameters;
    me_intermediate *intermediates;
    uint32_t n_intermediates;
} me_parameter_group;

/** Between the halves; owned by the engine's memory, to be released. */
typedef struct me_parameter_groups {
    me_parameter_group *groups; /**< in the order of their first parameter */
    uint32_t count;
} me_parameter_groups;

/** From where to where the first half goes; all borrowed. */
typedef struct me_backward_way {
    me_tensor *output;   /**< forgets its graph, as detach_() does */
    me_tensor *gradient; /**< of the output */
    me_tensor *input;    /**< a leaf that needs a gradient */
} me_backward_way;

/** What is called at the end of each run over the graph, as functions given to
 *  Engine.queue_callback() are; NULL: nothing. */
typedef struct me_after_run {
    void (*run)(void *self);
    void *self;
} me_after_run;

/** Parameters of a stage, in their order; all borrowed. */
typedef struct me_stage_weights {
    uint32_t count;
    me_tensor *const *tensors;
    me_after_run after;
} me_stage_weights;

/**
 * stage_backward_input(): the gradient of the input goes to its `grad`, added to
 * what is there.
 *
 * @param groups_out  for me_backward_weight(), which gives it back
 */
void me_backward_input(me_engine *e, const me_backward_way *way,
                       const me_stage_weights *weights,
                       me_parameter_groups *groups_out);

/** stage_backward_weight(): group by group, to each weight's `grad`. A region of
 *  the graph (region.h) runs again for each group that has a node in it. */
void me_backward_weight(me_engine *e, const me_stage_weights *weights,
                        me_parameter_groups *groups);

/** Give back what is held, if the second half does not come. */
void me_parameter_groups_fini(me_engine *e, me_parameter_groups *groups);

#endif /* MEMEST_TENSOR_BACKWARD_GROUPS_H */
