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

int me_leaf_words(const me_yaml_leaf *leaf, me_arena *arena,
                  const char *const **words_out)
{
    static const char blanks[] = " \t";
    const char *value = leaf->n_values == 1 ? leaf->values[0] : "";
    const size_t length = strlen(value);
    *words_out = leaf->values;
    if (leaf->is_list || strncmp(leaf->key, "--", 2) != 0 || value[0] != '[' ||
        value[length - 1] != ']') {
        return leaf->is_list ? leaf->n_values : 0;
    }
    char *text = me_arena_strdup(arena, value + 1);
    const char **words = me_arena_alloc(arena, length, sizeof *words);
    int count = 0;
    if (text == NULL || words == NULL) {
        return 0; // it is one value then, which is told to be none
    }
    text[length - 2] = '\0';
    for (char *at = text + strspn(text, blanks); *at != '\0';) {
        char *end = at + strcspn(at, blanks);
        words[count++] = at;
        at = end + strspn(end, blanks);
        *end = '\0';
    }
    *words_out = words;
    return count;
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
