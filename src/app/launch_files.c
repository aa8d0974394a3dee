/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/launch_files.h"

#include "script/carry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool me_launch_is_of_files(const char *variable)
{
    return strncmp(variable, ME_CARRY_FILE, sizeof ME_CARRY_FILE - 1) == 0 ||
           strncmp(variable, ME_CARRY_LINK, sizeof ME_CARRY_LINK - 1) == 0;
}

/** The folder that a launch's relative names are meant in. */
static const char *folder_of(const me_script_launch *launch)
{
    static const char mark[] = ME_CARRY_FOLDER;
    for (int i = 0; i < launch->n_variables; i++) {
        if (strncmp(launch->variables[i], mark, sizeof mark - 1) == 0) {
            return launch->variables[i] + sizeof mark - 1;
        }
    }
    return ".";
}

/** The value of `--flag=VALUE`, or the word; of `@FILE` the file. */
static const char *value_of(const char *word)
{
    const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
    const char *value = equals == NULL ? word : equals + 1;
    return value + (value[0] == '@');
}

/** @return false: there is none */
static bool find(const char *folder, const char *name, struct stat *out)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && stat(path, out) == 0;
}

/** Is a name that of one thing in a folder, and of another in the other, or of
 *  nothing there? */
static bool differs(const char *name, const char *folder, const char *other)
{
    struct stat a;
    struct stat b;
    const bool is_here = find(folder, name, &a);
    const bool is_there = find(other, name, &b);
    return is_here != is_there ||
           (is_here && (a.st_dev != b.st_dev || a.st_ino != b.st_ino));
}

bool me_launch_means_same(const me_script_launch *a, const me_script_launch *b)
{
    const char *const folders[] = {folder_of(a), folder_of(b)};
    const bool is_elsewhere = strcmp(folders[0], folders[1]) != 0;
    bool is_same = true;
    for (int i = 0; is_same && i < a->n_variables; i++) {
        const char *file = a->variables[i];
        const size_t n = strcspn(file, "\n");
        for (int j = 0;
             me_launch_is_of_files(file) && is_same && j < b->n_variables;
             j++) {
            is_same = strncmp(file, b->variables[j], n + 1) != 0 ||
                      strcmp(file, b->variables[j]) == 0;
        }
    }
    for (int i = 0; is_elsewhere && is_same && i < a->argc; i++) {
        const char *name = value_of(a->argv[i]);
        is_same = name[0] == '/' || name[0] == '-' || name[0] == '\0' ||
                  !differs(name, folders[0], folders[1]);
    }
    return is_same;
}
