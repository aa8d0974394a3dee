/**
 * @file
 * A node of a combined schedule (core/pipeline_parallel/utils.py, ScheduleNode,
 * and core/models/common/utils.py, TransformerLayerNode): a part of a layer with
 * a graph of its own. It works on detached inputs, runs its backward by itself,
 * and hands their gradients on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_SCHEDULE_NODE_H
#define MEMEST_NN_MEGATRON_SCHEDULE_NODE_H

#include "nn/megatron/weight_gradients.h"
#include "nn/nn.h"

enum {
    ME_NODE_TENSORS = 2 /**< that go in or out, or are detached on the way */
};

/** Tensors that travel between nodes, or their gradients; each held. */
typedef struct me_flow {
    uint32_t count;
    me_tensor *items[ME_NODE_TENSORS];
} me_flow;

/** All zero before its forward. */
typedef struct me_schedule_node {
    bool communicates; /**< runs on the stream of communication */
    me_flow inputs;    /**< leaves */
    me_flow outputs;
    me_flow before_detached;     /**< what was detached on the way, */
    me_flow detached;            /**< and its leaves */
    me_weight_gradients weights; /**< that wait for their own turn */
    uint8_t stream;              /**< of the caller, meanwhile */
    me_frame frame;
} me_schedule_node;

/** One more holder of each. */
me_flow me_flow_hold(me_flow flow);
/** Let go, from the last on, as a tuple does. */
void me_flow_release(me_engine *e, me_flow *flow);
/** `name = flow`, taking over. */
void me_flow_bind(me_engine *e, me_flow *name, me_flow flow);

/** `x.record_stream(current_stream())`, which does nothing on the stream that its
 *  block is of. */
void me_use_on_stream(me_engine *e, me_tensor *x);

/** Its forward begins: leaves that share the data of @p given. */
void me_schedule_node_begin(me_nn *nn, me_schedule_node *node,
                            const me_flow *given);

/** ScheduleNode.detach(): a leaf with the data of @p x, whose gradient goes on
 *  to @p x in the node's backward. */
me_tensor *me_schedule_node_detach(me_engine *e, me_schedule_node *node,
                                   me_tensor *x);

/**
 * Its forward has made @p outputs.
 *
 * @param given  what me_schedule_node_begin() was given; their blocks go if
 *               @p frees_input
 * @return the outputs, held for the caller
 */
me_flow me_schedule_node_end(me_nn *nn, me_schedule_node *node,
                             uint32_t n_outputs, me_tensor *const *outputs,
                             const me_flow *given, bool frees_input);

/**
 * Its backward. The node lets go of inputs and outputs then.
 *
 * @param gradients  of its outputs; borrowed
 * @param delays     weight gradients wait for me_schedule_node_weights()
 * @return gradients of its inputs, held for the caller
 */
me_flow me_schedule_node_backward(me_nn *nn, me_schedule_node *node,
                                  const me_flow *gradients, bool delays);

/** backward_dw(): weight gradients that waited. */
void me_schedule_node_weights(me_nn *nn, me_schedule_node *node);

/** Let go of what is left. */
void me_schedule_node_fini(me_engine *e, me_schedule_node *node);

#endif /* MEMEST_NN_MEGATRON_SCHEDULE_NODE_H */
