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

/** What load_state_dict() is given of a shard's states. */
typedef struct me_adam_values {
    me_tensor *of[ME_ADAM_STATES]; /**< owned; NULL: none */
} me_adam_values;

/** Let go of them. */
void me_adam_values_drop(me_engine *e, me_adam_values *values);

/** @name FusedAdam with states in other types, loaded (precision_aware.c)
 *  @{ */
/** Values without contents, each of its state's size. */
void me_precision_aware_dummies(me_engine *e, const me_precision_aware *a,
                                const me_shard_state *s,
                                me_adam_values *values_out);
/** get_unscaled_state(): float32 copies, and states that are float32, or of which
 *  but the low half is kept, themselves.
 *
 * @param is_raw  all are themselves */
void me_precision_aware_read(me_engine *e, const me_precision_aware *a,
                             me_shard_state *s, bool is_raw,
                             me_adam_values *values_out);
/** load_state_dict(): the states of @p count shards are made anew.
 *
 * @param is_wide  from what was read; else from dummies */
void me_precision_aware_load(me_engine *e, me_precision_aware *a,
                             me_shard_state *shards, uint32_t count,
                             bool is_wide);
/** set_scaled_state() of states that are there. */
void me_precision_aware_set(me_engine *e, me_precision_aware *a,
                            const me_shard_state *s);
/** @} */

/** One call of a kernel that moves @p bytes an element of the group. */
void me_fused_launch(me_engine *e, const me_step_group *group, uint64_t bytes);

/** One step of a group by FusedSGD (optimizers/fused_sgd.py). */
void me_fused_sgd_step(me_engine *e, const me_step_group *group);

#endif /* MEMEST_TRAIN_OPTIM_FUSED_OPTIMIZER_H */
