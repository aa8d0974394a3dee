/**
 * @file
 * CUDA graphs of single layers, or of their attention or MLP, as Transformer
 * Engine's make_graphed_callables() captures them for Megatron-LM
 * (--cuda-graph-impl transformer_engine; TECudaGraphHelper in
 * core/transformer/cuda_graphs.py, transformer_engine/pytorch/graph.py): between
 * two iterations, a graph a layer and micro-batch, forwards and backwards in the
 * order of the pipeline, with static inputs that are used again once a backward
 * has read them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_GRAPHS_H
#define MEMEST_NN_MEGATRON_TE_GRAPHS_H

#include "nn/megatron/cuda_graph.h"
#include "nn/megatron/rope.h"

/** The layers of a chunk, in order; all borrowed. */
typedef struct me_te_graph_chunk {
    me_nn *nn;
    me_graph_module *const *modules;
    uint32_t n_modules;
    const me_rope *rope; /**< whose angles they take; NULL: none */
} me_te_graph_chunk;

/** A forward or backward of the next micro-batch of a chunk. */
typedef struct me_te_graph_step {
    int32_t chunk;
    bool is_backward;
} me_te_graph_step;

/** What is captured, in which order; all borrowed. */
typedef struct me_te_graph_plan {
    const me_te_graph_chunk *chunks;
    int32_t n_chunks;
    int32_t n_microbatches;
    const me_te_graph_step *steps; /**< 2 · n_chunks · n_microbatches */
    int32_t n_steps;
    int32_t n_warm_ups; /**< of each graph */
} me_te_graph_plan;

/** create_cudagraphs(): layers are replayed from now on. */
void me_te_graphs_create(me_nn *nn, const me_te_graph_plan *plan);

#endif /* MEMEST_NN_MEGATRON_TE_GRAPHS_H */
