/**
 * @file
 * The MLP of a transformer layer (core/transformer/mlp.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MLP_H
#define MEMEST_NN_MLP_H

#include "nn/linear.h"

typedef struct me_mlp {
    me_module_id module;
    me_linear linear_fc1;
    me_linear linear_fc2;
} me_mlp;

/** The module and its parameters below @p parent. */
void me_mlp_create(me_nn *nn, me_module_id parent, me_mlp *mlp);

/** (s, b, h) to (s, b, h); the bias of fc2 is left to the caller. */
me_tensor *me_mlp_forward(me_nn *nn, const me_mlp *mlp, me_tensor *x);

#endif /* MEMEST_NN_MLP_H */
