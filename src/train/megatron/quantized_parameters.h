/**
 * @file
 * Parameters that are kept in FP8 (`--fp8-param-gather`): how the optimizer's main
 * parameters come into them (core/fp8_utils.py, quantize_param_shard(), and
 * Transformer Engine's pytorch/tensor/utils.py, quantize_master_weights()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_QUANTIZED_PARAMETERS_H
#define MEMEST_TRAIN_MEGATRON_QUANTIZED_PARAMETERS_H

#include "train/megatron/optimizer.h"

/** Cast this rank's shards of an optimizer's quantised parameters, in place.
 *  Scales are those of all of them, whoever has a shard. */
void me_quantize_parameters(struct me_trainer *t, const me_optimizer *o);

#endif /* MEMEST_TRAIN_MEGATRON_QUANTIZED_PARAMETERS_H */
