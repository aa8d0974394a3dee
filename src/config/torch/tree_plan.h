/**
 * @file
 * The `parallelize_plan` of a `module` group: styles of
 * torch.distributed.tensor.parallel, one a path of modules.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TREE_PLAN_H
#define MEMEST_CONFIG_TORCH_TREE_PLAN_H

#include "config/torch/tree_keys.h"

/** Read a plan into a tree. @return ME_OK; ME_ERR_CONFIG with file and line */
me_status me_layers_read_plan(const me_layers_reading *r,
                              config_setting_t *plan,
                              me_layer_tree *tree) ME_MUST_CHECK;

/** The plan as text that reads back equal; nothing for a tree without one. */
void me_layers_dump_plan(const me_layer_tree *tree, me_str *text);

#endif /* MEMEST_CONFIG_TORCH_TREE_PLAN_H */
