/**
 * @file
 * The keys of a module's group, for layers.c alone: which class has which, and
 * what it sets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TREE_KEYS_H
#define MEMEST_CONFIG_TORCH_TREE_KEYS_H

#include "config/torch/tree.h"

/** One reading of a tree. */
typedef struct me_layers_reading {
    me_arena *arena;
    const char *where;
    me_diag *diag;
    int n_modules;
} me_layers_reading;

/** What a group says besides its layer: how it stands in its list. */
typedef struct me_layer_placing {
    int64_t repeat;          /**< of the module itself */
    int64_t repeat_children; /**< of all that is in it, in turn */
    int64_t checkpoint_from; /**< copies before it are not checkpointed */
} me_layer_placing;

/** Where a key's value goes. */
typedef struct me_layer_target {
    me_layer_spec *layer;
    me_layer_placing *placing;
    me_layer_tree *tree; /**< of the root; NULL below it */
} me_layer_target;

/** Fail with the line and the name of a setting. */
me_status me_layers_fail(const me_layers_reading *r,
                         const config_setting_t *setting, const char *what);

/** Fail for want of memory. */
me_status me_layers_no_memory(const me_layers_reading *r);

/** Set what one key says. */
me_status me_layer_key_set(const me_layers_reading *r,
                           const config_setting_t *setting,
                           const me_layer_target *target) ME_MUST_CHECK;

/** Write the keys of a layer that are numbers and flags of its class, as they are
 *  read. */
void me_layer_keys_dump(const me_layer_spec *layer, me_str *text);

/** Has a group all keys that its class must have? */
me_status me_layer_keys_check(const me_layers_reading *r,
                              config_setting_t *group,
                              const me_layer_spec *layer) ME_MUST_CHECK;

/** Sequential or ModuleList: children are numbered. */
bool me_layer_is_list(const me_layer_spec *layer);

#endif /* MEMEST_CONFIG_TORCH_TREE_KEYS_H */
