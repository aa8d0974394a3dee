/**
 * @file
 * What PyTorch's optimizers allocate in a step: state on the first one, and
 * the temporaries of their kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_OPTIM_OPTIM_H
#define MEMEST_TRAIN_OPTIM_OPTIM_H

#include "model/choices.h"
#include "nn/nn.h"

/** What the optimizer steps: a parameter or this rank's shard of one. */
typedef struct me_shard_state {
    me_parameter *parameter;
    uint64_t numel;
    me_dtype dtype;        /**< of its state */
    me_tensor *main;       /**< float32 copy, or NULL */
    me_tensor *gradient;   /**< float32 copy of the gradient, or NULL */
    me_tensor *moments[2]; /**< exp_avg, exp_avg_sq; or momentum */
    me_tensor *step;       /**< on the device with fused kernels, or NULL */
} me_shard_state;

/** A parameter group in one step. */
typedef struct me_step_group {
    me_shard_state *shards; /**< borrowed; their moments are made here */
    uint32_t count;
    const me_nn *nn; /**< redistributes gradients of DTensors; NULL: none are */
    me_optimizer_impl impl;
    bool has_plain_tensors; /**< parameters and states are neither DTensors nor
                                 parts of a buffer */
    bool is_first_step;
    bool is_scaled;    /**< of fused Adam: a GradScaler's found_inf
                            goes in */
    bool is_decayed;   /**< weight decay is not 0 */
    bool adds_decay;   /**< of Adam: to gradients; AdamW scales parameters */
    bool has_momentum; /**< of SGD */
} me_step_group;

/** One step of a group. */
void me_optim_step(me_engine *e, me_optimizer_kind kind,
                   const me_step_group *group);

#endif /* MEMEST_TRAIN_OPTIM_OPTIM_H */
