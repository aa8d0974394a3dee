/**
 * @file
 * Tied weights of a tree of modules under fully_shard().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TORCH_TIED_H
#define MEMEST_CONFIG_TORCH_TORCH_TIED_H

#include "config/config.h"

/**
 * Say where fully_shard() parts tied weights (nn/torch/tie.h). Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_torch_note_tied(me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCH_TORCH_TIED_H */
