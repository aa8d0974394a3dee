/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/models.h"

#include "base/parse.h"
#include "config/nearest.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifndef ME_DATA_DIR
#    define ME_DATA_DIR "."
#endif

enum {
    NAME_MAX_BYTES = 80
};

static const char *const directories[] = {
    "configs/models",
    ME_DATA_DIR "/configs/models",
};

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* The model of a directory whose name is nearest, if any is near. */
static void offer_directory(const char *path, me_nearest *nearest,
                            char name_out[NAME_MAX_BYTES])
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char name[NAME_MAX_BYTES];
        const size_t length = strlen(entry->d_name);
        if (length <= 4 || length - 4 >= sizeof name ||
            !me_ends_with(entry->d_name, ".cfg")) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(length - 4),
                       entry->d_name);
        if (me_nearest_offer(nearest, name)) {
            memcpy(name_out, name, sizeof name);
        }
    }
    (void)closedir(directory);
}

static me_status fail_unknown(const char *model, me_diag *diag)
{
    char name[NAME_MAX_BYTES] = "";
    me_nearest nearest = me_nearest_begin(model);
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        offer_directory(directories[i], &nearest, name);
    }
    if (name[0] != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "no model '%.80s' in configs/models: did you mean %s?",
                       model, name);
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "no model '%.80s' in configs/models, and no such file",
                   model);
}

me_status me_model_find(const char *model, me_diag *diag, me_str *path_out)
{
    bool is_found = strchr(model, '/') != NULL || me_ends_with(model, ".cfg") ||
                    me_ends_with(model, ".json");
    if (is_found) {
        me_str_append(path_out, model);
    }
    for (size_t i = 0;
         !is_found && i < sizeof directories / sizeof directories[0]; i++) {
        me_str path = {0};
        me_str_printf(&path, "%s/%s.cfg", directories[i], model);
        is_found = is_file(me_str_text(&path));
        if (is_found) {
            me_str_append(path_out, me_str_text(&path));
        }
        me_str_fini(&path);
    }
    if (!is_found && is_file(model)) {
        me_str_append(path_out, model);
        is_found = true;
    }
    if (me_str_status(path_out) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a path");
    }
    return is_found ? ME_OK : fail_unknown(model, diag);
}
