/**
 * @file
 * _GroupedLinear (transformer_engine/pytorch/module/grouped_linear.py): linear
 * layers of a rank's experts as one function.
 *
 * Left out: FP8, cuBLASLt's grouped products
 * (NVTE_GROUPED_LINEAR_USE_FUSED_GROUPED_GEMM), single_grouped_weight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_GROUPED_H
#define MEMEST_NN_MEGATRON_TE_GROUPED_H

#include "nn/megatron/grouped_linear.h"

/** (R, inputs) to (R, outputs), rows sorted by expert; the bias added unless the
 *  caller does it. */
me_tensor *me_te_grouped_linear(me_nn *nn, const me_grouped_linear *linear,
                                me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_TE_GROUPED_H */
