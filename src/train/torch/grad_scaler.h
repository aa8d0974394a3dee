/**
 * @file
 * torch.amp.GradScaler (torch/amp/grad_scaler.py, PyTorch 2.11) of one
 * optimizer: what its steps allocate. That all gradients are finite, so that no
 * step is skipped, is an assumption that reports name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_GRAD_SCALER_H
#define MEMEST_TRAIN_TORCH_GRAD_SCALER_H

#include "train/torch/loop.h"

/** The numbers that a scaler keeps, unless it has them: it makes them when it
 *  scales a loss, and PyTorch refuses to step without. Pipeline ranks that have
 *  no loss call `scaler._lazy_init_scale_growth_tracker(device)`. */
void me_grad_scaler_begin(me_loop *l);

/** `scaler.scale(loss)`: a variable of the running frame. */
me_tensor *me_grad_scaler_scale(me_loop *l, me_tensor *loss);

/** `scaler.unscale_(optimizer)`. */
void me_grad_scaler_unscale(me_loop *l);

/** `scaler.step(optimizer)`; it unscales unless that has been done. */
void me_grad_scaler_step(me_loop *l);

/** `scaler.update()`. */
void me_grad_scaler_update(me_loop *l);

/** Let go of its tensors. */
void me_grad_scaler_fini(me_loop *l);

#endif /* MEMEST_TRAIN_TORCH_GRAD_SCALER_H */
