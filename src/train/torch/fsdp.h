/**
 * @file
 * The wrapper of a model whose marked layers, and then the model itself, are
 * passed to fully_shard() (train/fsdp/fsdp.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_FSDP_H
#define MEMEST_TRAIN_TORCH_FSDP_H

#include "train/torch/loop.h"

/** Wraps the modules that are marked, in order, and then the model. */
extern const me_wrapper me_fsdp_wrapper_row;

#endif /* MEMEST_TRAIN_TORCH_FSDP_H */
