/**
 * @file
 * Which checkpoints of modules are modelled where: their kinds, and one inside
 * another.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TORCH_CHECKPOINTS_H
#define MEMEST_CONFIG_TORCH_TORCH_CHECKPOINTS_H

#include "config/config.h"

/** Does a stage make gradients of its input and of its weights apart, as in
 *  zero-bubble orders? False as well of an order that cannot be read. */
bool me_torch_splits_backward(const me_config *config);

/** Refuse the tree's first checkpoint that is not modelled, by name: one with
 *  what its kind does not have, or beside what it was not measured with. */
me_status me_torch_check_checkpoints(const me_config *config, me_diag *diag);

#endif /* MEMEST_CONFIG_TORCH_TORCH_CHECKPOINTS_H */
