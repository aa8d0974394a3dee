/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/data_files.h"

#include "base/nearest.h"
#include "base/parse.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef ME_DATA_DIR
#    define ME_DATA_DIR "."
#endif

enum {
    NAME_BYTES = 64,
    MAX_NAMES = 128 /**< of a directory; more are not offered */
};

const me_data_kind me_data_models = {"model", "configs/models"};
const me_data_kind me_data_cards = {"card", "configs/cards"};

static const char *const roots[] = {".", ME_DATA_DIR};

enum {
    N_ROOTS = sizeof roots / sizeof roots[0]
};

typedef struct names {
    char name[MAX_NAMES][NAME_BYTES];
    size_t count;
} names;

static void append_path(me_str *path, size_t root, const me_data_kind *kind,
                        const char *name)
{
    const char *slash = name[0] == '\0' ? "" : "/";
    const char *end = name[0] == '\0' ? "" : ".cfg";
    if (root == 0) {
        me_str_printf(path, "%s%s%s%s", kind->folder, slash, name, end);
    } else {
        me_str_printf(path, "%s/%s%s%s%s", roots[root], kind->folder, slash,
                      name, end);
    }
}

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list(size_t root, const me_data_kind *kind, names *all)
{
    all->count = 0;
    me_str path = {0};
    append_path(&path, root, kind, "");
    DIR *directory = opendir(me_str_text(&path));
    me_str_fini(&path);
    if (directory == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(directory);
         entry != NULL && all->count < MAX_NAMES; entry = readdir(directory)) {
        const size_t length = strlen(entry->d_name);
        if (length > 4 && length - 4 < NAME_BYTES &&
            me_ends_with(entry->d_name, ".cfg")) {
            (void)snprintf(all->name[all->count++], NAME_BYTES, "%.*s",
                           (int)(length - 4), entry->d_name);
        }
    }
    (void)closedir(directory);
    qsort(all->name, all->count, NAME_BYTES, compare);
}

bool me_data_visit(const me_data_kind *kind,
                   bool (*on_file)(void *self, const char *name,
                                   const char *path),
                   void *self)
{
    bool is_done = false;
    for (size_t root = 0; root < N_ROOTS && !is_done; root++) {
        names all;
        list(root, kind, &all);
        for (size_t i = 0; i < all.count && !is_done; i++) {
            me_str path = {0};
            append_path(&path, root, kind, all.name[i]);
            is_done = on_file(self, all.name[i], me_str_text(&path));
            me_str_fini(&path);
        }
    }
    return is_done;
}

static me_status fail_unknown(const me_data_kind *kind, const char *wanted,
                              me_diag *diag)
{
    names all = {.count = 0};
    for (size_t root = 0; root < N_ROOTS && all.count == 0; root++) {
        list(root, kind, &all);
    }
    me_str known = {0};
    me_nearest nearest = me_nearest_begin(wanted);
    const char *near = NULL;
    for (size_t i = 0; i < all.count; i++) {
        me_str_printf(&known, "%s%s", i == 0 ? "" : ", ", all.name[i]);
        if (me_nearest_offer(&nearest, all.name[i])) {
            near = all.name[i];
        }
    }
    const me_status status =
        near != NULL
            ? me_fail(diag, ME_ERR_CONFIG,
                      "no %s '%.64s' in %s: did you mean %s?", kind->what,
                      wanted, kind->folder, near)
            : me_fail(diag, ME_ERR_CONFIG,
                      "no %s '%.64s' in %s, and no such file: %.300s are there",
                      kind->what, wanted, kind->folder,
                      all.count == 0 ? "none" : me_str_text(&known));
    me_str_fini(&known);
    return status;
}

me_status me_data_find(const me_data_kind *kind, const char *name,
                       me_diag *diag, me_str *path_out)
{
    bool is_found = strchr(name, '/') != NULL || me_ends_with(name, ".cfg") ||
                    me_ends_with(name, ".json") || me_ends_with(name, ".toml");
    if (is_found) {
        me_str_append(path_out, name);
    }
    bool has_room = true;
    for (size_t root = 0; !is_found && root < N_ROOTS; root++) {
        me_str path = {0};
        append_path(&path, root, kind, name);
        is_found = is_file(me_str_text(&path));
        if (is_found) {
            me_str_append(path_out, me_str_text(&path));
        }
        has_room = has_room && me_str_status(&path) == ME_OK;
        me_str_fini(&path);
    }
    if (!is_found && is_file(name)) {
        me_str_append(path_out, name);
        is_found = true;
    }
    if (!has_room || me_str_status(path_out) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a path");
    }
    return is_found ? ME_OK : fail_unknown(kind, name, diag);
}
