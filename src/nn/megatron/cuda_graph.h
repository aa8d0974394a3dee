/**
 * @file
 * CUDA graphs of single layers, Megatron-LM's own (--cuda-graph-impl local;
 * core/transformer/cuda_graphs.py): during the first iteration every layer runs
 * as ever and is written down; then each forward and backward is warmed up and
 * captured in the order in which they ran, into one private pool of the
 * allocator; from then on they are replayed.
 *
 * A replay runs the layer's operations for what they cost and for the collectives
 * that they call; what they would allocate lies in the private pool already
 * (ME_MEMPOOL_REPLAY).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_CUDA_GRAPH_H
#define MEMEST_NN_MEGATRON_CUDA_GRAPH_H

#include "nn/nn.h"

enum {
    ME_GRAPH_INPUTS = 3,   /**< of a layer: hidden states, mask, angles */
    ME_GRAPH_OUTPUTS = 14, /**< at most */
    ME_GRAPH_GRADS = 4,    /**< of them those that need gradients, at most */
    ME_GRAPH_KINDS = 4,    /**< of layers, by their outputs */
    ME_GRAPH_SEEDS = 8     /**< seed and offset of four generators */
};

/** What a graph gives: (s, b, h) of the layer, or what the rest of a layer with
 *  experts takes up. */
typedef struct me_graph_outputs {
    me_tensor *items[ME_GRAPH_OUTPUTS];
    uint32_t count;
    const me_tensor
        *unread; /**< one that needs a gradient and is read by nobody;
                                  NULL: none */
} me_graph_outputs;

/** What is captured as one, CudaGraphManager: a layer. */
typedef struct me_graph_module {
    me_nn *nn; /**< of its chunk, borrowed */
    /** Its outputs are variables of the running frame. */
    void (*run)(me_nn *nn, const void *self,
                me_tensor *const inputs[ME_GRAPH_INPUTS],
                me_graph_outputs *outputs_out);
    const void *self; /**< for `run` */
    me_module_id module;
    int32_t number;  /**< of the layer */
    bool takes_mask; /**< attention is in it */
    /** Sizes of its outputs to which no gradient comes, in their order.
     *  @{ */
    uint64_t unread_bytes[ME_GRAPH_OUTPUTS];
    uint32_t n_unread;
    /** @} */
    me_tensor *residual;      /**< of the last capture up to a router, which the
                                   layer's mlp_norm_manager names; owned */
    uint32_t first_parameter; /**< of the rank's list */
    uint32_t end_parameter;
    struct me_graph_runner *first; /**< of its forwards' runners, or NULL */
} me_graph_module;

/** Of a rank; all zero before the first layer. */
typedef struct me_cuda_graphs {
    struct me_graph_record *records; /**< forwards and backwards as they ran */
    uint32_t n_records;
    uint32_t n_capacity;
    struct me_graph_shared *shared; /**< inputs that several runners take */
    uint32_t n_shared;
    uint32_t n_shared_capacity;
    struct me_graph_runner *last; /**< whose output was made last */
    uint32_t last_serial;         /**< of that output's storage */
    me_tensor
        *seeds[ME_GRAPH_SEEDS];  /**< and offsets of random numbers; owned */
    me_tensor *skips_fp8_update; /**< a flag of TE's; owned */
    /** TE's static gradients of all outputs of the same shapes; owned. */
    me_graph_outputs output_grads[ME_GRAPH_KINDS];
    uint32_t n_output_grads;
    bool is_created;
} me_cuda_graphs;

/** A module for a layer whose parameters follow; where Megatron-LM itself
 *  captures, the job goes on on another stream. @return of the engine; NULL
 *  without memory, or where no graphs of layers are asked for */
me_graph_module *me_graph_module_create(me_nn *nn);

/** The module's forward: run and written down, or replayed. Its outputs are
 *  variables of the running frame. */
void me_graph_module_forward(me_graph_module *graph,
                             me_tensor *const inputs[ME_GRAPH_INPUTS],
                             me_graph_outputs *outputs_out);

/** create_cudagraphs(): at the end of the first iteration's schedule capture what
 *  it wrote down; later, nothing. */
void me_cuda_graphs_create(me_nn *nn);

/** Let go of everything. */
void me_cuda_graphs_fini(me_engine *e, me_cuda_graphs *graphs);

#endif /* MEMEST_NN_MEGATRON_CUDA_GRAPH_H */
