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

#endif /* MEMEST_MODEL_IMPL_CHOICES_H */
