/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/leaf_flags.h"

#include <stdio.h>
#include <string.h>

void me_leaf_flag_name(const me_yaml_leaf *leaf, char name[ME_LEAF_FLAG_BYTES])
{
    // Dashes are there in the MODEL_ARGS of Megatron-LM's tests.
    const char *dashes = strncmp(leaf->key, "--", 2) == 0 ? "" : "--";
    (void)snprintf(name, ME_LEAF_FLAG_BYTES, "%s%s", dashes, leaf->key);
    for (char *c = strchr(name, '_'); c != NULL; c = strchr(c, '_')) {
        *c = '-';
    }
}

bool me_leaf_flag_find(const char *name, me_flag *flag)
{
    return me_flag_find(name, flag) && flag->kind != ME_FLAG_REMOVED;
}

bool me_leaf_is_text(const me_yaml_leaf *leaf)
{
    char name[ME_LEAF_FLAG_BYTES];
    me_flag flag = {.values = NULL};
    me_leaf_flag_name(leaf, name);
    return me_leaf_flag_find(name, &flag) && flag.values != NULL &&
           flag.values[0] == 's';
}

bool me_leaf_flag_negation(const char *name, char out[ME_LEAF_FLAG_BYTES])
{
    static const char *const forms[] = {"--no-", "--disable-"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        me_flag flag;
        (void)snprintf(out, ME_LEAF_FLAG_BYTES, "%s%.*s", forms[i],
                       ME_LEAF_FLAG_BYTES - 16, name + 2);
        if (me_flag_find(out, &flag)) {
            return true;
        }
    }
    return false;
}

bool me_leaf_is_flag(const me_yaml_leaf *leaf)
{
    char name[ME_LEAF_FLAG_BYTES];
    char negation[ME_LEAF_FLAG_BYTES];
    me_flag flag;
    me_leaf_flag_name(leaf, name);
    return me_leaf_flag_find(name, &flag) ||
           me_leaf_flag_negation(name, negation);
}
