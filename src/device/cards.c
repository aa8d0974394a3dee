/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/cards.h"

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
    MAX_CARDS = 128 /**< of a directory; more are not offered */
};

static const char *const directories[] = {
    "configs/cards",
    ME_DATA_DIR "/configs/cards",
};

enum {
    N_DIRECTORIES = sizeof directories / sizeof directories[0]
};

typedef struct names {
    char name[MAX_CARDS][NAME_BYTES];
    size_t count;
} names;

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list(const char *path, names *all)
{
    all->count = 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(directory);
         entry != NULL && all->count < MAX_CARDS; entry = readdir(directory)) {
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

bool me_cards_visit(bool (*on_file)(void *self, const char *name,
                                    const char *path),
                    void *self)
{
    bool is_done = false;
    for (size_t d = 0; d < N_DIRECTORIES && !is_done; d++) {
        names all;
        list(directories[d], &all);
        for (size_t i = 0; i < all.count && !is_done; i++) {
            me_str path = {0};
            me_str_printf(&path, "%s/%s.cfg", directories[d], all.name[i]);
            is_done = on_file(self, all.name[i], me_str_text(&path));
            me_str_fini(&path);
        }
    }
    return is_done;
}

static me_status fail_unknown(const char *card, me_diag *diag)
{
    me_str known = {0};
    for (size_t d = 0; d < N_DIRECTORIES && known.length == 0; d++) {
        names all;
        list(directories[d], &all);
        for (size_t i = 0; i < all.count; i++) {
            me_str_printf(&known, "%s%s", i == 0 ? "" : ", ", all.name[i]);
        }
    }
    const me_status status =
        me_fail(diag, ME_ERR_CONFIG,
                "no card '%.64s' in configs/cards: %.300s are there; a file "
                "that describes one, or auto, is taken as well",
                card, known.length == 0 ? "none" : me_str_text(&known));
    me_str_fini(&known);
    return status;
}

me_status me_card_find(const char *card, me_diag *diag, me_str *path_out)
{
    bool is_found = strchr(card, '/') != NULL || me_ends_with(card, ".cfg");
    bool has_room = true;
    if (is_found) {
        me_str_append(path_out, card);
    }
    for (size_t i = 0; !is_found && i < N_DIRECTORIES; i++) {
        me_str path = {0};
        me_str_printf(&path, "%s/%s.cfg", directories[i], card);
        is_found = is_file(me_str_text(&path));
        if (is_found) {
            me_str_append(path_out, me_str_text(&path));
        }
        has_room = has_room && me_str_status(&path) == ME_OK;
        me_str_fini(&path);
    }
    if (!has_room || me_str_status(path_out) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a path");
    }
    return is_found ? ME_OK : fail_unknown(card, diag);
}
