/**
 * @file
 * TEFusedMLP (core/extensions/transformer_engine.py): norm, both linear layers and
 * the activation as one function of te.ops.
 *
 * Left out: experts, FP8, userbuffers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_MLP_H
#define MEMEST_NN_MEGATRON_TE_MLP_H

#include "nn/megatron/mlp.h"

/** (s, b, h) to (s, b, h), under sequence parallelism of the rank's rows; the bias
 *  of fc2 is left to the caller. */
me_tensor *me_te_fused_mlp(me_nn *nn, const me_mlp *mlp, me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_TE_MLP_H */
