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
    me_tensor *output;                  /**< with its graph; owned */
    me_tensor *output_grad; /**< of its consumer's backward; owned */
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

#endif /* MEMEST_NN_MEGATRON_CUDA_GRAPH_PRIVATE_H */
