/**
 * @file
 * _GroupedLinear (transformer_engine/pytorch/module/grouped_linear.py) in FP8:
 * every expert's rows are quantised, and its weight.
 *
 * Left out: what te_grouped.h leaves out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_FP8_GROUPED_H
#define MEMEST_NN_MEGATRON_TE_FP8_GROUPED_H

#include "nn/megatron/grouped_linear.h"

/** As me_te_grouped_linear(), whose module is entered. */
me_tensor *me_te_fp8_grouped_linear(me_nn *nn, const me_grouped_linear *linear,
                                    me_tensor *x, const uint64_t *tokens);

#endif /* MEMEST_NN_MEGATRON_TE_FP8_GROUPED_H */
