/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/clean.h"
#include "config/config_private.h"

#include <string.h>

/** Room grows by doubling, at the counts 0, 8, 16, 32, … */
static bool make_room(me_flag_list *list)
{
    const uint32_t count = (uint32_t)list->count;
    if (count != 0 && (count < 8 || (count & (count - 1)) != 0)) {
        return true;
    }
    const size_t capacity = count == 0 ? 8 : (size_t)count * 2;
    me_flag_note *flags =
        me_realloc(list->flags, capacity, sizeof *flags, "config.flags");
    if (flags == NULL) {
        return false;
    }
    list->flags = flags;
    return true;
}

me_status me_flag_list_add(me_config *config, me_flag_list *list,
                           const char *flag, const char *note, me_diag *diag)
{
    char *flag_copy = me_arena_strdup(config->own->text, flag);
    char *note_copy =
        note == NULL ? NULL : me_arena_strdup(config->own->text, note);
    if (flag_copy == NULL || (note != NULL && note_copy == NULL) ||
        !make_room(list)) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the flag %.40s",
                       flag);
    }
    me_text_clean(flag_copy);
    if (note_copy != NULL) {
        me_text_clean(note_copy);
    }
    list->flags[list->count] =
        (me_flag_note){.flag = flag_copy, .note = note_copy};
    list->count++;
    return ME_OK;
}

bool me_flag_list_has(const me_flag_list *list, const char *flag)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (strcmp(list->flags[i].flag, flag) == 0) {
            return true;
        }
    }
    return false;
}
