/**
 * @file
 * What layers of a tree may be given. Each question fails the engine
 * (ME_ERR_CONFIG) where the answer is no, with what PyTorch wants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_LAYER_INPUTS_H
#define MEMEST_NN_TORCH_LAYER_INPUTS_H

#include "nn/torch/layers.h"
#include "ops/vision.h"

/** The last dimension of what a layer gets must be what it was made for, or
 *  what a plan has left of it. */
bool me_layer_has_columns(me_engine *e, const me_layer *layer,
                          const me_tensor *x);

/** There is no kernel for whole numbers. */
bool me_layer_is_floating(me_engine *e, const me_layer *layer,
                          const me_tensor *x);

/** How a layer's window moves, of Conv2d and MaxPool2d. */
me_window me_layer_window(const me_layer_spec *s);

/** Images that a layer of @p channels takes (0: of any), and that hold a window
 *  where the layer moves one. */
bool me_layer_has_images(me_engine *e, const me_layer *layer,
                         const me_tensor *x, uint64_t channels);

/** Images of the type that the weights have. BatchNorm2d takes those of 16 bits
 *  with float32 weights as well (is_mixed_type()). */
bool me_layer_has_type(me_engine *e, const me_layer *layer, const me_tensor *x);

#endif /* MEMEST_NN_TORCH_LAYER_INPUTS_H */
