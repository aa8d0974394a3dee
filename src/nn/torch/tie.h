/**
 * @file
 * Weights that two modules of a tree have, and those that fully_shard() parts: it
 * puts its shards into the modules that it wraps, so that a module of another
 * group keeps the whole weight, of which its own group makes another parameter
 * (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
 * _get_param_module_infos()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_TIE_H
#define MEMEST_NN_TORCH_TIE_H

#include "nn/torch/layers.h"

/**
 * `self.output.weight = self.embedding.weight`, for each module below @p root that
 * says so: its own weight goes, or waits for me_layers_share() where fully_shard()
 * will part the two. Stops the engine at a weight of another shape, or of none.
 */
void me_layers_tie(me_nn *nn, me_layer *root);

/** Once a model is cast and moved: weights that will be parted have the memory of
 *  those that they are tied to. */
void me_layers_share(me_nn *nn);

#endif /* MEMEST_NN_TORCH_TIE_H */
