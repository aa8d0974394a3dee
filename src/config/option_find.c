/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"
#include "config/config_private.h"

#include <string.h>

const me_option *me_option_find(const char *name)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

bool me_option_names_file(const me_option *option)
{
    static const char *const names[] = {"machine.file", "moe.tokens",
                                        "pipeline.schedule_file"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(option->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool me_option_group_is_known(const char *group)
{
    const size_t length = strlen(group);
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(options[i].name, group, length) == 0 &&
            options[i].name[length] == '.') {
            return true;
        }
    }
    return false;
}

/** The group is often what people leave out: a last part that fits wins. */
static const me_option *find_by_last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot == NULL ? name : dot + 1;
    const me_option *found = NULL;
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        const char *other = strrchr(options[i].name, '.');
        if (other != NULL && strcmp(other + 1, last) == 0) {
            if (found != NULL) {
                return NULL;
            }
            found = &options[i];
        }
    }
    return found;
}

const me_option *me_option_nearest(const char *name)
{
    const me_option *found = find_by_last_part(name);
    if (found != NULL) {
        return found;
    }
    size_t count = 0;
    const me_option *options = me_options(&count);
    me_nearest nearest = me_nearest_begin(name);
    for (size_t i = 0; i < count; i++) {
        if (me_nearest_offer(&nearest, options[i].name)) {
            found = &options[i];
        }
    }
    return found;
}
