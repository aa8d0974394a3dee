/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/leaf_variables.h"

#include "config/config_private.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 128
};

bool me_leaf_has_part(const char *path, const char *const *words)
{
    for (const char *at = path; *at != '\0';) {
        const size_t n = strcspn(at, ".");
        for (size_t i = 0; words[i] != NULL; i++) {
            if (strlen(words[i]) == n && strncmp(at, words[i], n) == 0) {
                return true;
            }
        }
        at += n + (at[n] == '.');
    }
    return false;
}

bool me_leaf_ends(const char *whole, const char *path)
{
    const size_t n = strlen(whole);
    const size_t m = strlen(path);
    return n >= m && strcmp(whole + n - m, path) == 0 &&
           (n == m || whole[n - m - 1] == '.');
}

bool me_leaf_is_named(const me_yaml_leaf *leaf, const char *names)
{
    for (const char *at = names; *at != '\0';) {
        char name[NAME_BYTES];
        const size_t n = strcspn(at, "|");
        (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (me_leaf_ends(leaf->path, name)) {
            return true;
        }
        at += n + (at[n] == '|');
    }
    return false;
}

bool me_leaf_is_variable(const me_yaml_leaf *leaf)
{
    static const char *const sections[] = {"ENV", "ENV_VARS", "envs",
                                           "env_vars", NULL};
    return !leaf->is_list && me_leaf_has_part(leaf->path, sections);
}

me_status me_leaf_take_variable(me_config *config, const me_yaml_leaf *leaf,
                                me_diag *diag)
{
    const char *name = leaf->key;
    if (me_flag_list_has(&config->environment, name)) {
        return ME_OK;
    }
    const char *value = leaf->values[0];
    return me_config_keep_variable(config, name, value[0] == '$' ? NULL : value,
                                   diag);
}

/** Without blanks and quotes around it. */
static char *bare(char *word)
{
    word += strspn(word, " ");
    size_t n = strlen(word);
    while (n > 0 && word[n - 1] == ' ') {
        word[--n] = '\0';
    }
    if (n > 1 && (*word == '"' || *word == '\'') && word[n - 1] == *word) {
        word[n - 1] = '\0';
        word++;
    }
    return word;
}

bool me_leaf_names_variable(char *inside, const char **other_out)
{
    static const char omega[] = "oc.env:";
    const bool is_omega = strncmp(inside, omega, sizeof omega - 1) == 0;
    char *name = is_omega ? inside + sizeof omega - 1 : inside;
    char *end = name + strcspn(name, is_omega ? "," : ":");
    *other_out = NULL;
    if (!is_omega && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
                         (size_t)(end - name)) {
        return false;
    }
    if (*end != '\0') {
        *end = '\0';
        *other_out = is_omega ? bare(end + 1) : end + 1;
    }
    name = is_omega ? bare(name) : name;
    memmove(inside, name, strlen(name) + 1);
    return true;
}
