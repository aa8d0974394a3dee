/**
 * @file
 * The choices of choices.h that say where code beside the layers' is from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_IMPL_CHOICES_H
#define MEMEST_MODEL_IMPL_CHOICES_H

#include "model/choices.h"

/** Library that Megatron-LM can import, whatever the layers are made of: some of
 *  its parts are then taken from it. */
#define ME_IMPORTABLE_LIST(X)                                                  \
    X(ME_IMPORTABLE_NONE, "none", "none")                                      \
    X(ME_IMPORTABLE_TE, "transformer_engine", "Transformer Engine")            \
    X(ME_IMPORTABLE_APEX, "apex", "Apex")

typedef enum me_importable {
    ME_IMPORTABLE_LIST(ME_CHOICE_CONSTANT)
} me_importable;

extern const me_choice me_importable_choices[];

#define ME_NORM_IMPL_LIST(X) X(ME_NORM_IMPL_TORCH, "torch", "torch")

typedef enum me_norm_impl {
    ME_NORM_IMPL_LIST(ME_CHOICE_CONSTANT)
} me_norm_impl;

extern const me_choice me_norm_impl_choices[];

/** torch.optim's three: multi-tensor kernels, fused ones, one parameter after the
 *  other; and Transformer Engine's. */
#define ME_OPTIMIZER_IMPL_LIST(X)                                              \
    X(ME_OPTIMIZER_TORCH_FOREACH, "torch_foreach", "torch_foreach")            \
    X(ME_OPTIMIZER_TORCH_FUSED, "torch_fused", "torch_fused")                  \
    X(ME_OPTIMIZER_TORCH_FOR_LOOP, "torch_for_loop", "torch_for_loop")         \
    X(ME_OPTIMIZER_FUSED, "fused", "fused")

typedef enum me_optimizer_impl {
    ME_OPTIMIZER_IMPL_LIST(ME_CHOICE_CONSTANT)
} me_optimizer_impl;

extern const me_choice me_optimizer_impl_choices[];

/** What is loaded before the first iteration. */
#define ME_CHECKPOINT_LOAD_LIST(X)                                             \
    X(ME_CHECKPOINT_NOTHING, "nothing", "nothing")                             \
    X(ME_CHECKPOINT_OTHER, "other", "in another format")                       \
    X(ME_CHECKPOINT_WEIGHTS, "weights", "weights")                             \
    X(ME_CHECKPOINT_ALL, "all", "weights and optimizer states")

typedef enum me_checkpoint_load {
    ME_CHECKPOINT_LOAD_LIST(ME_CHOICE_CONSTANT)
} me_checkpoint_load;

extern const me_choice me_checkpoint_load_choices[];

#endif /* MEMEST_MODEL_IMPL_CHOICES_H */
