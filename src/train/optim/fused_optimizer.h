/**
 * @file
 * Transformer Engine's optimizers: kernels that take a list of all tensors of a
 * group at once and work in place. Lists of pointers go along with a launch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_OPTIM_FUSED_OPTIMIZER_H
#define MEMEST_TRAIN_OPTIM_FUSED_OPTIMIZER_H

#include "train/optim/optim.h"

/** State of a shard that lives from now on. @return owned by the caller */
me_tensor *me_make_state(me_engine *e, const char *op, me_dtype dtype,
                         me_shape shape);

/** One step of a group by FusedAdam (optimizers/fused_adam.py). */
void me_fused_adam_step(me_engine *e, const me_step_group *group);

/** The same with states in other types (precision_aware.c). */
void me_precision_aware_step(me_engine *e, const me_step_group *group);

/** One call of a kernel that moves @p bytes an element of the group. */
void me_fused_launch(me_engine *e, const me_step_group *group, uint64_t bytes);

/** One step of a group by FusedSGD (optimizers/fused_sgd.py). */
void me_fused_sgd_step(me_engine *e, const me_step_group *group);

#endif /* MEMEST_TRAIN_OPTIM_FUSED_OPTIMIZER_H */
