/**
 * @file
 * What PyTorch's optimizers allocate in a step: state on the first one, and
 * the temporaries of their multi-tensor (foreach) kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_OPTIM_OPTIM_H
#define MEMEST_TRAIN_OPTIM_OPTIM_H

#include "train/megatron/trainer.h"

/** A parameter group in one step. */
typedef struct me_step_group {
    me_shard_state *shards; /**< borrowed; their moments are made here */
    uint32_t count;
    bool is_first_step;
    bool is_decayed;   /**< weight decay is not 0 */
    bool has_momentum; /**< of SGD */
} me_step_group;

/** One step of a group. */
void me_optim_step(me_engine *e, me_optimizer_kind kind,
                   const me_step_group *group);

#endif /* MEMEST_TRAIN_OPTIM_OPTIM_H */
