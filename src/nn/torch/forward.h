/**
 * @file
 * Runs the forward of a module as Python would: variables of a frame, operands
 * that die once they are used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_FORWARD_H
#define MEMEST_NN_TORCH_FORWARD_H

#include "nn/torch/layers.h"

/** As me_forward_run() for a module, whose children can be called. */
me_tensor *me_forward_evaluate(me_nn *nn, const me_forward *forward,
                               const me_layer *self, uint32_t n_parameters,
                               me_tensor *const *parameters);

/** `name = y` where y may be what the name holds already. @return @p y */
me_tensor *me_rebind_result(me_engine *e, me_tensor *name, me_tensor *y);

/** Call a module, through a checkpoint if it is marked. */
me_tensor *me_layer_call(me_layer *layer, me_tensor *x);

#endif /* MEMEST_NN_TORCH_FORWARD_H */
