/**
 * @file
 * torch.nn.parallel.DistributedDataParallel (nn/parallel/distributed.py,
 * PyTorch 2.11) around a model, or around a stage of a pipeline.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_TORCH_DDP_H
#define MEMEST_TRAIN_TORCH_TORCH_DDP_H

#include "train/torch/reducer.h"

/** A wrapped module; the engine's memory. */
typedef struct me_ddp_module me_ddp_module;

/**
 * Wrap @p model, whose parameters are the loop's from @p first to the last.
 * Collective over the ranks that have copies of the model.
 *
 * @return NULL after a failure of the engine
 */
me_ddp_module *me_ddp_wrap(me_loop *l, const me_layer *model, uint32_t first);

/** What comes before the model's forward: buckets are made anew, buffers are
 *  sent. */
void me_ddp_pre_forward(me_ddp_module *ddp);

/**
 * What comes after it.
 *
 * @param syncs  the backward that follows is to reduce: false in no_sync()
 * @param y      what the model made, a variable of the running frame
 * @return what the wrapper returns: @p y, or a copy that took its place
 */
me_tensor *me_ddp_post_forward(me_ddp_module *ddp, bool syncs, me_tensor *y);

/** The next backward reduces, though its forward ran in no_sync(). */
void me_ddp_prepare_for_backward(me_ddp_module *ddp);

/** A backward has ended. */
void me_ddp_end_backward(me_ddp_module *ddp);

/** Give back what it holds; NULL is allowed. */
void me_ddp_fini(me_ddp_module *ddp);

/** DistributedDataParallel around the model of a loop without a pipeline. */
extern const me_wrapper me_ddp_wrapper_row;

#endif /* MEMEST_TRAIN_TORCH_TORCH_DDP_H */
