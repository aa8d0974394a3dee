/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/data_roots.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef ME_DATA_DIR
#    define ME_DATA_DIR "."
#endif

/** Where an installation has its data, seen from its libraries and from its
 *  programs. */
#ifndef ME_DATA_FROM_LIB
#    define ME_DATA_FROM_LIB "../share/memest"
#endif
#ifndef ME_DATA_FROM_BIN
#    define ME_DATA_FROM_BIN "../share/memest"
#endif

static bool is_root(me_data_roots *roots, const char *path)
{
    me_str configs = {0};
    struct stat about;
    me_str_printf(&configs, "%s/configs", path);
    const bool is_there = me_str_status(&configs) == ME_OK &&
                          stat(me_str_text(&configs), &about) == 0 &&
                          S_ISDIR(about.st_mode);
    me_str_fini_piece(&configs, &roots->path[0]);
    return is_there;
}

static void add(me_data_roots *roots, const char *path)
{
    me_str_append(&roots->path[roots->count++], path);
}

/** The data that an installation with @p file has, seen from its folder. */
static bool add_beside(me_data_roots *roots, const char *file, const char *data)
{
    char path[PATH_MAX];
    char clean[PATH_MAX];
    if (realpath(file, path) == NULL) {
        return false;
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    me_str joined = {0};
    me_str_printf(&joined, "%s/%s", path, data);
    const bool is_there = me_str_status(&joined) == ME_OK &&
                          realpath(me_str_text(&joined), clean) != NULL &&
                          is_root(roots, clean);
    me_str_fini_piece(&joined, &roots->path[0]);
    if (is_there) {
        add(roots, clean);
    }
    return is_there;
}

me_data_roots me_data_roots_find(void)
{
    static const char here = '\0'; // lies in the file that this code is in
    me_data_roots roots = {.count = 0};
    Dl_info file;
    add(&roots, "");
    const bool is_library =
        dladdr(&here, &file) != 0 && file.dli_fname != NULL &&
        add_beside(&roots, file.dli_fname, ME_DATA_FROM_LIB);
    if (!is_library) {
        (void)add_beside(&roots, "/proc/self/exe", ME_DATA_FROM_BIN);
    }
    add(&roots, ME_DATA_DIR);
    return roots;
}

void me_data_roots_fini(me_data_roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        me_str_fini(&roots->path[i]);
    }
}
