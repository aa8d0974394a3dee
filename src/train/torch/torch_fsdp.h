/**
 * @file
 * The wrapper of a model whose marked layers, and then the model itself, are
 * passed to fully_shard() (train/fsdp/fsdp.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_TORCH_FSDP_H
#define MEMEST_TRAIN_TORCH_TORCH_FSDP_H

#include "train/fsdp/fsdp.h"
#include "train/torch/loop.h"

/** Wraps the modules that are marked, in order, and then the model. */
extern const me_wrapper me_fsdp_wrapper_row;

/**
 * The same for any model of the loop's.
 *
 * @param is_stage  the model is a stage of a pipeline, whose runtime reduces
 * @return the engine's memory, to be emptied with me_fsdp_fini(); NULL after a
 *         failure of the engine
 */
me_fsdp *me_loop_fully_shard(me_loop *l, me_layer *model, bool is_stage);

#endif /* MEMEST_TRAIN_TORCH_TORCH_FSDP_H */
