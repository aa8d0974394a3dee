/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/hub_cache.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *variable(const me_hub_environment *environment,
                            const char *name)
{
    const char *value = environment == NULL
                            ? NULL
                            : environment->variable(environment->self, name);
    return value != NULL ? value : getenv(name);
}

/** A variable, and what is behind its value. */
typedef struct place {
    const char *name;
    const char *below;
} place;

static const place homes[] = {
    {"HF_HOME", ""},
    {"XDG_CACHE_HOME", "/huggingface"},
    {"HOME", "/.cache/huggingface"},
};

static const place caches[] = {
    {"HF_HUB_CACHE", ""},
    {"HUGGINGFACE_HUB_CACHE", ""},
};

/** The first place whose variable is set, of which a `~` is $HOME. */
static bool append_place(const place *places, size_t count,
                         const me_hub_environment *environment, me_str *path)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = variable(environment, places[i].name);
        const char *home = variable(environment, "HOME");
        if (value == NULL || value[0] == '\0') {
            continue;
        }
        const bool is_home = value[0] == '~' && home != NULL &&
                             (value[1] == '/' || value[1] == '\0');
        me_str_printf(path, "%s%s%s", is_home ? home : "",
                      is_home ? value + 1 : value, places[i].below);
        return true;
    }
    return false;
}

static const char *variable_of(const void *self, const char *name)
{
    return me_config_variable(self, name);
}

me_hub_environment me_hub_environment_of(const me_config *config)
{
    return (me_hub_environment){.variable = variable_of, .self = config};
}

bool me_hub_is_variable(const char *name)
{
    bool is_one = false;
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        is_one |= strcmp(homes[i].name, name) == 0;
    }
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        is_one |= strcmp(caches[i].name, name) == 0;
    }
    return is_one;
}

void me_hub_home(const me_hub_environment *environment, me_str *path)
{
    (void)append_place(homes, sizeof homes / sizeof homes[0], environment,
                       path);
}

static void append_cache(const me_hub_environment *environment, me_str *path)
{
    if (!append_place(caches, sizeof caches / sizeof caches[0], environment,
                      path)) {
        me_hub_home(environment, path);
        me_str_append(path, "/hub");
    }
}

/** The revision with the least name: a cache has one, as a rule. */
static void append_revision(me_str *path)
{
    DIR *snapshots = opendir(me_str_text(path));
    char least[256] = "";
    for (const struct dirent *entry = snapshots == NULL ? NULL
                                                        : readdir(snapshots);
         entry != NULL; entry = readdir(snapshots)) {
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof least &&
            (least[0] == '\0' || strcmp(entry->d_name, least) < 0)) {
            memcpy(least, entry->d_name, strlen(entry->d_name) + 1);
        }
    }
    if (snapshots != NULL) {
        (void)closedir(snapshots);
    }
    me_str_printf(path, "/%s", least);
}

/** Could it be a name on the Hub, and no path? */
static bool is_hub_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return name[0] != '/' && name[0] != '.' && name[0] != '$' &&
           (slash == NULL || strchr(slash + 1, '/') == NULL);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void me_hub_cached(const char *name, const me_hub_environment *environment,
                   me_str *path)
{
    if (!is_hub_name(name)) {
        return;
    }
    append_cache(environment, path);
    me_str_append(path, "/models--");
    for (const char *c = name; *c != '\0'; c++) {
        me_str_append_n(path, *c == '/' ? "--" : c, *c == '/' ? 2 : 1);
    }
    me_str_append(path, "/snapshots");
    append_revision(path);
    const char *text = me_str_text(path);
    if (me_str_status(path) == ME_OK &&
        (!is_folder(text) || text[strlen(text) - 1] == '/')) {
        me_str_fini(path);
    }
}
