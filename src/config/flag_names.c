/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_private.h"
#include "config/flags.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_' || c == '.';
}

/** Does a text have the name of an option, as a whole? */
static bool has_name(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(text, name); at != NULL;
         at = strstr(at + 1, name)) {
        if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[length])) {
            return true;
        }
    }
    return false;
}

/** Append the flags of a rule that the launch command has. */
static void append_given(const me_config *config, const me_flag_rule *rule,
                         me_str *flags)
{
    const char *cursor = rule->flags;
    size_t length = 0;
    for (const char *flag = me_flag_next(&cursor, &length); flag != NULL;
         flag = me_flag_next(&cursor, &length)) {
        char name[96];
        (void)snprintf(name, sizeof name, "%.*s", (int)length, flag);
        if (me_flag_list_has(&config->modelled, name)) {
            me_str_printf(flags, "%s%s", flags->length == 0 ? "" : ", ", name);
        }
    }
}

void me_config_name_flags(const me_config *config, me_diag *diag)
{
    me_str flags = {0};
    if (diag == NULL ||
        (diag->status != ME_ERR_CONFIG && diag->status != ME_ERR_UNSUPPORTED)) {
        return;
    }
    for (const me_flag_rule *r = me_flags_modelled; r->flags != NULL; r++) {
        if (r->option != NULL && has_name(diag->text, r->option)) {
            append_given(config, r, &flags);
        }
    }
    const size_t length = strlen(diag->text);
    if (me_str_status(&flags) == ME_OK && flags.length > 0 &&
        length + flags.length + sizeof " ()" <= sizeof diag->text) {
        (void)snprintf(diag->text + length, sizeof diag->text - length, " (%s)",
                       me_str_text(&flags));
    }
    me_str_fini(&flags);
}
