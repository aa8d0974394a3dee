/**
 * @file
 * What cuda_graph.c, where layers are written down and replayed, and
 * cuda_graph_capture.c share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_CUDA_GRAPH_PRIVATE_H
#define MEMEST_NN_MEGATRON_CUDA_GRAPH_PRIVATE_H

#include "nn/megatron/cuda_graph.h"

/** ArgMetadata: what an input was when it was written down. */
typedef struct me_graph_input {
    me_shape shape;
    me_dtype dtype;
    bool is_there;
    bool requires_grad;
    int32_t shared; /**< index into the list, or -1 */
} me_graph_input;

/** One micro-batch of a module, _CudaGraphRunner. */
typedef struct me_graph_runner {
    me_graph_module *module;
    me_graph_input specs[ME_GRAPH_INPUTS];
    struct me_graph_runner *producer; /**< whose output the hidden states are */
    bool is_consumed;                 /**< another's hidden states */
    bool has_recorded_backward;
    me_tensor *inputs[ME_GRAPH_INPUTS]; /**< static; owned */
    me_graph_outputs outputs;           /**< with their graph; owned */
    me_tensor *output_grad; /**< of its consumer's backward; owned */
    me_tensor **made; /**< gradients of hidden states and parameters, while they
                           are kept; owned */
    uint32_t n_made;
} me_graph_runner;

typedef struct me_graph_record {
    me_graph_runner *runner;
    bool is_backward;
} me_graph_record;

/** A tensor that several runners take, such as the angles. */
typedef struct me_graph_shared {
    uint32_t serial; /**< of its storage */
    uint32_t uses;
    uint32_t left;     /**< of them, while graphs are captured */
    me_tensor *buffer; /**< owned */
} me_graph_shared;

/** A mask of all micro-batches' samples, (b, 1, s/c, s), that @p op makes. */
me_tensor *me_graph_mask(const me_nn *nn, const char *op);

/** A runner of the module, whose tensors go with the graphs; NULL without
 *  memory. */
me_graph_runner *me_graph_add_runner(me_graph_module *graph);

/** The module's forward outside of the model's, @p inputs its own; its outputs are
 *  variables of the running frame. */
void me_graph_run_module(me_graph_runner *r, me_tensor *const *inputs,
                         me_graph_outputs *outputs_out);

/** The outputs that need gradients, in their order; borrowed. */
me_graph_outputs me_graph_roots(const me_graph_outputs *outputs);

/** Hold outputs, and let go of them. */
void me_graph_outputs_retain(const me_graph_outputs *outputs,
                             me_graph_outputs *kept_out);
void me_graph_outputs_clear(me_engine *e, me_graph_outputs *outputs);

/** The leaves of a runner's backward: hidden states, then parameters. @return of
 *  the engine, each to be released; NULL without memory */
me_node **me_graph_make_leaves(me_graph_runner *r, uint32_t *count_out);

/** Backward from @p roots to leaves, of which all gradients are made.
 *
 *  @param gradients  of each root; borrowed
 *  @param gradients_out  the caller's; NULL where none arrived */
void me_graph_run_grad(me_engine *e, const me_graph_outputs *roots,
                       const me_graph_outputs *gradients,
                       me_node *const *leaves, uint32_t n_leaves,
                       me_tensor **gradients_out);

/** register_generator_state() of the tracker's generators. */
void me_graph_register_generators(me_nn *nn);

/** torch.cuda.graph(): the cache is emptied, the default generator registered if
 *  it is not yet, and then all goes into the pool. @return what held before */
me_context me_graph_begin_capture(me_nn *nn);

#endif /* MEMEST_NN_MEGATRON_CUDA_GRAPH_PRIVATE_H */
