/**
 * @file
 * torch.nn.parallel.DistributedDataParallel with its defaults
 * (nn/parallel/distributed.py, torch/csrc/distributed/c10d/reducer.cpp,
 * PyTorch 2.11): gradients are copied to buckets and back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_DDP_H
#define MEMEST_TRAIN_TORCH_DDP_H

#include "train/torch/loop.h"

/** Gradients come in another order than parameters were registered: the first
 *  backward shows it, and the second forward makes buckets anew in that order. */
extern const me_wrapper me_ddp_wrapper_row;

#endif /* MEMEST_TRAIN_TORCH_DDP_H */
