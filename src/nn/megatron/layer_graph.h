/**
 * @file
 * A transformer layer of which a CUDA graph has all or a part
 * (_te_cuda_graph_capture() and _te_cuda_graph_replay() in
 * core/transformer/transformer_layer.py): attention, what comes after it, or of
 * experts what comes before their tokens leave the rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_LAYER_GRAPH_H
#define MEMEST_NN_MEGATRON_LAYER_GRAPH_H

#include "nn/megatron/transformer.h"

/** What the layer's graph captures; without a graph where that is nothing.
 *
 *  @param first_parameter  the layer's first in the rank's list */
void me_layer_graph_create(me_nn *nn, me_transformer_layer *layer,
                           uint32_t first_parameter);

/** can_recompute_pre_mlp_layernorm_for_cudagraph(): not where a graph hands out
 *  the norm's output. */
bool me_layer_graph_keeps_norm(const me_nn *nn,
                               const me_transformer_layer *layer);

/** The layer by its graph, and what that has not before it or after it. */
me_tensor *me_layer_graph_forward(me_nn *nn, const me_transformer_layer *layer,
                                  me_tensor *const inputs[ME_GRAPH_INPUTS]);

#endif /* MEMEST_NN_MEGATRON_LAYER_GRAPH_H */
