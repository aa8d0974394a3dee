/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/data_files.h"

#include "base/data_roots.h"
#include "base/nearest.h"
#include "base/parse.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    NAME_BYTES = 64,
    MAX_NAMES = 128 /**< of a directory; more are not offered */
};

const me_data_kind me_data_models = {"model", "configs/models"};
const me_data_kind me_data_cards = {"card", "configs/cards"};
const me_data_kind me_data_machines = {"machine", "configs/machines"};

typedef struct names {
    char name[MAX_NAMES][NAME_BYTES];
    size_t count;
} names;

static void append_path(me_str *path, const char *root,
                        const me_data_kind *kind, const char *name)
{
    me_str_printf(path, "%s%s%s%s%s%s", root, root[0] == '\0' ? "" : "/",
                  kind->folder, name[0] == '\0' ? "" : "/", name,
                  name[0] == '\0' ? "" : ".cfg");
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

static me_status list(const char *root, const me_data_kind *kind, names *all)
{
    all->count = 0;
    me_str path = {0};
    append_path(&path, root, kind, "");
    const me_status status = me_str_status(&path);
    DIR *directory = status == ME_OK ? opendir(me_str_text(&path)) : NULL;
    me_str_fini(&path);
    if (directory == NULL) {
        return status;
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
    return ME_OK;
}

me_status me_data_visit(const me_data_kind *kind,
                        bool (*on_file)(void *self, const char *name,
                                        const char *path),
                        void *self, bool *is_done_out)
{
    bool is_done = false;
    me_data_roots roots = me_data_roots_find();
    me_status status = ME_OK;
    for (size_t root = 0; root < roots.count && !is_done && status == ME_OK;
         root++) {
        const char *folder = me_str_text(&roots.path[root]);
        names all = {.count = 0};
        status = me_str_status(&roots.path[root]);
        status = status == ME_OK ? list(folder, kind, &all) : status;
        for (size_t i = 0; i < all.count && !is_done && status == ME_OK; i++) {
            me_str path = {0};
            append_path(&path, folder, kind, all.name[i]);
            status = me_str_status(&path);
            is_done = status == ME_OK &&
                      on_file(self, all.name[i], me_str_text(&path));
            me_str_fini(&path);
        }
    }
    me_data_roots_fini(&roots);
    *is_done_out = is_done;
    return status;
}

/** Is @p name the beginning of @p known, up to a hyphen, in either case? */
static bool is_beginning(const char *name, const char *known)
{
    const size_t length = strlen(name);
    return length > 0 && strncasecmp(name, known, length) == 0 &&
           known[length] == '-';
}

/** What may have been meant, with commas between: the nearest name, or all
 *  that begin with what was written. */
static void append_near(const names *all, const char *wanted, me_str *near)
{
    me_nearest nearest = me_nearest_begin(wanted);
    const char *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        if (me_nearest_offer(&nearest, all->name[i])) {
            best = all->name[i];
        }
    }
    if (best != NULL) {
        me_str_append(near, best);
    }
    for (size_t i = 0; i < all->count && best == NULL; i++) {
        if (is_beginning(wanted, all->name[i])) {
            me_str_printf(near, "%s%s", near->length == 0 ? "" : ", ",
                          all->name[i]);
        }
    }
}

static me_status fail_unknown(const me_data_kind *kind,
                              const me_data_roots *roots, const char *wanted,
                              me_diag *diag)
{
    names all = {.count = 0};
    me_status status = ME_OK;
    for (size_t root = 0;
         root < roots->count && all.count == 0 && status == ME_OK; root++) {
        status = list(me_str_text(&roots->path[root]), kind, &all);
    }
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for a path");
    }
    me_str known = {0};
    me_str near = {0};
    append_near(&all, wanted, &near);
    for (size_t i = 0; i < all.count; i++) {
        me_str_printf(&known, "%s%s", i == 0 ? "" : ", ", all.name[i]);
    }
    const size_t most = 200; // of a line's bytes
    if (all.count == 0 || known.length > most) {
        me_str_fini(&known);
        me_str_printf(&known, "`memest list %ss` names those that", kind->what);
    }
    status =
        near.length > 0
            ? me_fail(diag, ME_ERR_CONFIG,
                      "no %s '%.64s' in %s: did you mean %.300s?", kind->what,
                      wanted, kind->folder, me_str_text(&near))
            : me_fail(diag, ME_ERR_CONFIG,
                      "no %s '%.64s' in %s, and no such file: %s are there",
                      kind->what, wanted, kind->folder, me_str_text(&known));
    me_str_fini(&near);
    me_str_fini(&known);
    return status;
}

/** Append NAME.cfg of the first root that has it. @return whether one has */
static bool find_named(const me_data_kind *kind, const me_data_roots *roots,
                       const char *name, me_str *path_out)
{
    bool is_found = false;
    for (size_t root = 0; !is_found && root < roots->count; root++) {
        me_str path = {0};
        append_path(&path, me_str_text(&roots->path[root]), kind, name);
        is_found = is_file(me_str_text(&path));
        if (is_found) {
            me_str_append(path_out, me_str_text(&path));
        }
        me_str_fini_piece(&path, path_out);
    }
    return is_found;
}

static bool looks_like_path(const char *name)
{
    return strchr(name, '/') != NULL || me_ends_with(name, ".cfg") ||
           me_ends_with(name, ".json") || me_ends_with(name, ".yaml") ||
           me_ends_with(name, ".yml") || me_ends_with(name, ".xml") ||
           me_ends_with(name, ".toml");
}

me_status me_data_find(const me_data_kind *kind, const char *name,
                       me_diag *diag, me_str *path_out)
{
    me_data_roots roots = me_data_roots_find();
    const bool is_named =
        !looks_like_path(name) && find_named(kind, &roots, name, path_out);
    const bool is_found = is_named || looks_like_path(name) || is_file(name);
    if (!is_named && is_found) {
        me_str_append(path_out, name);
    }
    me_status status = me_str_status(path_out);
    for (size_t i = 0; status == ME_OK && i < roots.count; i++) {
        status = me_str_status(&roots.path[i]);
    }
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory for a path");
    } else if (!is_found) {
        status = fail_unknown(kind, &roots, name, diag);
    }
    me_data_roots_fini(&roots);
    return status;
}
