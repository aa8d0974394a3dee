/**
 * @file
 * Gradient norm and clipping (core/optimizer/clip_grads.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_CLIP_GRADS_H
#define MEMEST_TRAIN_MEGATRON_CLIP_GRADS_H

#include "train/megatron/optimizer.h"

struct me_trainer;

/** get_grad_norm() of the first @p count optimizers, and their clipping. A norm
 *  that stays on the device is the trainer's from then on. One optimizer of all
 *  that clips nothing has no norm. */
void me_clip_gradients(struct me_trainer *t, int count);
/** Transformer Engine's multi_tensor_l2norm() of @p numel elements. @return the
 *  norm, a variable of the running frame */
me_tensor *me_multi_tensor_l2norm(me_engine *e, me_dtype dtype, uint64_t numel);

/** What strands have to have in common of an optimizer (strands.h). */
typedef struct me_strand_traits {
    bool has_shards;
    bool has_norm;       /**< gradients count for it */
    bool has_split_norm; /**< also such that tensor ranks split */
} me_strand_traits;

/** They of optimizer @p i. Local. */
me_strand_traits me_strand_traits_of(const struct me_trainer *t, int i);
/** count_zeros() of the first @p count optimizers' gradients. */
void me_count_zeros(struct me_trainer *t, int count);
/** get_grad_stats_parallel_group(): the ranks over which the norm of what an
 *  optimizer steps, and its found_inf, go. */
me_group_kind me_statistics_group(const struct me_trainer *t,
                                  const me_optimizer *o);

#endif /* MEMEST_TRAIN_MEGATRON_CLIP_GRADS_H */
