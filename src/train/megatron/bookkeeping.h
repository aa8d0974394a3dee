/**
 * @file
 * Start-up, and what a training loop does around its steps: timers, barriers,
 * checks of scalars, the log (training/training.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_BOOKKEEPING_H
#define MEMEST_TRAIN_MEGATRON_BOOKKEEPING_H

#include "tensor/tensor.h"

struct me_trainer;

/** A scalar that somebody keeps. */
me_tensor *me_keep_scalar(me_engine *e, const char *op, uint64_t bytes);
/** torch.distributed.barrier() @p n times. */
void me_barriers(struct me_trainer *t, int n);
/** Starts @p n timers of log level 1, one after the other, where the job has
 *  such: each has a barrier (core/timers.py). */
void me_start_timers(struct me_trainer *t, int n);
/** From `initialized` to the first parameter. */
void me_start_up(struct me_trainer *t);

/** What initialize_megatron() has NCCL do for user buffers, where the job has
 *  any. */
void me_bootstrap_user_buffers(struct me_trainer *t);
/** all_gather_object over the world. @param bytes  of this rank's object,
 * pickled
 *  @param longest  of any rank's */
void me_gather_object(struct me_trainer *t, uint64_t bytes, uint64_t longest);
/** The same of objects that ranks have of different lengths, where nobody knows
 *  the longest: this rank's is taken for it, and ranks agree on the call alone. */
void me_gather_own_object(struct me_trainer *t, uint64_t bytes);
/** The same over a group. */
void me_gather_object_in(struct me_trainer *t, me_group_kind group,
                         uint64_t bytes, uint64_t longest);
/** Between `optimizer_built` and the first iteration. */
void me_before_training(struct me_trainer *t);
/** rerun_state_machine: is a scalar of @p bytes NaN, is it infinite? Not asked
 *  in the first iteration. */
void me_validate_scalar(struct me_trainer *t, uint64_t bytes);
/** The end of train_step: losses averaged, scalars reduced. */
void me_reduce_losses(struct me_trainer *t);
/** load_checkpoint() (load.c), if the job loads one: moments exist from then on. */
void me_load_checkpoint(struct me_trainer *t);
/** Times of @p count timers over the world (core/timers.py). */
void me_gather_timers(struct me_trainer *t, uint64_t count);
/** Has the rank the model's last stage, whose forward gives the loss? */
bool me_has_last_stage(const struct me_trainer *t);
/** evaluate() (evaluation.c), after all iterations, where the job evaluates: the
 *  point "evaluated". */
void me_evaluate(struct me_trainer *t);
/** save_checkpoint() (save.c): the point "checkpoint_saved", where it takes
 *  memory. */
void me_save_checkpoint(struct me_trainer *t);
/** calc_params_l2_norm(), where the job logs it (params_norm.c). */
void me_log_params_norm(struct me_trainer *t);
/** training_log(). */
void me_log_iteration(struct me_trainer *t, bool is_skipped);

#endif /* MEMEST_TRAIN_MEGATRON_BOOKKEEPING_H */
