/**
 * @file
 * The job's environment in a file of keys with values: `ENV` of ms-swift's,
 * `envs` of FlagScale's, `env_vars` of others'.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_LEAF_VARIABLES_H
#define MEMEST_CONFIG_MEGATRON_LEAF_VARIABLES_H

#include "base/yaml_text.h"
#include "config/config.h"

#include <stdbool.h>

/** Is a part of @p path, between dots, among @p words, which end with NULL?
 *  Local. */
bool me_leaf_has_part(const char *path, const char *const *words);

/** Is @p path the end of @p whole, at a dot? Local. */
bool me_leaf_ends(const char *whole, const char *path);

/** Is one of @p names, with bars between them, the leaf's key or the end of its
 *  path? Local. */
bool me_leaf_is_named(const me_yaml_leaf *leaf, const char *names);

/** Does the leaf stand in a section of environment variables? Local. */
bool me_leaf_is_variable(const me_yaml_leaf *leaf);

/**
 * Keep the variable; one that the launch command sets holds. Local.
 *
 * @return as me_config_keep_variable()
 */
me_status me_leaf_take_variable(me_config *config, const me_yaml_leaf *leaf,
                                me_diag *diag) ME_MUST_CHECK;

/**
 * The variable of the environment that `${…}` names: `NAME` and `NAME:other`, as
 * Primus writes them, or `oc.env:NAME` and `oc.env:NAME,other`, which are
 * OmegaConf's.
 *
 * @param inside     what stands between the braces; is cut to the variable's name
 * @param other_out  the value where it is not set, in @p inside; NULL: none
 * @return false: it names a key, or what another function of OmegaConf's makes
 *         (`mul:2,3`), and is as it was
 */
bool me_leaf_names_variable(char *inside, const char **other_out);

#endif /* MEMEST_CONFIG_MEGATRON_LEAF_VARIABLES_H */
