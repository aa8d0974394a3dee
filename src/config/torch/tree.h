/**
 * @file
 * The `module` group of a `.cfg` file: a model as a tree of PyTorch's layers
 * (model/layer.h). The format is docs/modules.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TREE_H
#define MEMEST_CONFIG_TORCH_TREE_H

#include "base/arena.h"
#include "base/conf.h"
#include "base/str.h"
#include "model/layer.h"

/**
 * A tree in memory of its own, which copies of a job share: it does not change
 * once it is read, and the last holder gives it back.
 */
typedef struct me_layers {
    me_layer_tree tree;
    me_arena *arena;
    int refs;
} me_layers;

/**
 * Read a tree. Local.
 *
 * @param where       file name for messages
 * @param layers_out  one reference of the caller's
 * @return ME_OK; ME_ERR_CONFIG with file and line; ME_ERR_NOMEM
 */
me_status me_layers_read(config_setting_t *group, const char *where,
                         me_diag *diag, me_layers **layers_out) ME_MUST_CHECK;

/** One more reference; NULL is allowed. @return @p layers */
me_layers *me_layers_retain(me_layers *layers);

/** One reference less; NULL is allowed. */
void me_layers_release(me_layers *layers);

/** The tree as a `module` group that reads back equal. */
void me_layers_dump(const me_layers *layers, me_str *text);

#endif /* MEMEST_CONFIG_TORCH_TREE_H */
