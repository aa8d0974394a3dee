/**
 * @file
 * parallelize_module() with the styles of torch.distributed.tensor.parallel
 * (PyTorch 2.11): what a plan does to the parameters of a model's modules, and
 * to what goes into and comes out of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_PARALLELIZE_H
#define MEMEST_NN_TORCH_PARALLELIZE_H

#include "nn/torch/layers.h"

/** Apply a tree's plan to the model built from it, entry by entry. Collective
 *  over the tensor-parallel ranks. */
void me_parallelize(me_nn *nn, me_layer *root, const me_layer_tree *tree);

/** As me_parallelize() for a stage of a pipeline, where entries may name modules
 *  that other stages have. */
void me_parallelize_stage(me_nn *nn, me_layer *root, const me_layer_tree *tree);

/** @p x as the module's style wants it; @p x for a module without one. */
me_tensor *me_style_input(const me_layer *layer, me_tensor *x);

/**
 * What a style hands out of what the module made.
 *
 * @param x  what went in
 * @param y  what the module made of it
 */
me_tensor *me_style_output(const me_layer *layer, const me_tensor *x,
                           me_tensor *y);

/** F.linear() of a module whose style is RowwiseParallel, whose bias is a
 *  summand on each rank. */
me_tensor *me_rowwise_linear(const me_layer *layer, me_tensor *x);

/** F.embedding() of a table of which each rank has some rows: indices of other
 *  ranks' rows are masked. */
me_tensor *me_rowwise_embedding(const me_layer *layer, me_tensor *x);

#endif /* MEMEST_NN_TORCH_PARALLELIZE_H */
