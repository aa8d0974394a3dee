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

static void append_cache(const me_hub_environment *environment, me_str *path)
{
    static const char *const places[][2] = {
        {"HF_HUB_CACHE", ""},
        {"HUGGINGFACE_HUB_CACHE", ""},
        {"HF_HOME", "/hub"},
        {"XDG_CACHE_HOME", "/huggingface/hub"},
        {"HOME", "/.cache/huggingface/hub"},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = variable(environment, places[i][0]);
        if (value != NULL && value[0] != '\0') {
            me_str_printf(path, "%s%s", value, places[i][1]);
            return;
        }
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
