/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/options_command.h"

#include "base/text_wrap.h"
#include "config/flags.h"
#include "config/options.h"
#include "report/text.h"

#include <stdio.h>
#include <string.h>

enum {
    FLAG_WIDTH = 44 /* and two blanks */
};

static const char *name_of(me_flag_kind kind)
{
    switch (kind) {
    case ME_FLAG_MODELLED: return "modelled";
    case ME_FLAG_NOT_MODELLED: return "not modelled";
    case ME_FLAG_NO_EFFECT: return "no effect on memory";
    case ME_FLAG_REFUSED: return "refused";
    case ME_FLAG_REMOVED: return "removed";
    }
    return "";
}

/** "modelled: moe.router_topk; with --num-experts alone" */
static void append_rule(me_flag_kind kind, const me_flag_rule *rule,
                        me_str *text)
{
    me_str_append(text, name_of(kind));
    if (kind == ME_FLAG_NOT_MODELLED) {
        me_effect_append(rule->effect, text);
    }
    const char *between = ": ";
    if (kind == ME_FLAG_MODELLED && rule->option != NULL) {
        me_str_printf(text, "%s%s%s%s", between, rule->option,
                      rule->constant == NULL ? "" : " = ",
                      rule->constant == NULL ? "" : rule->constant);
        between = "; ";
    }
    if (rule->note != NULL) {
        me_str_printf(text, "%s%s", between, rule->note);
        between = "; ";
    }
    if (rule->needs != NULL) {
        me_str_append(text, between);
        me_flag_append_needs(rule, text);
    }
}

/** The flags of a rule that have the word. @return was there one? */
static bool append_flags(me_flag_kind kind, const me_flag_rule *rule,
                         const char *word, me_str *text)
{
    bool is_found = false;
    const char *cursor = rule->flags;
    size_t length = 0;
    for (const char *flag = me_flag_next(&cursor, &length); flag != NULL;
         flag = me_flag_next(&cursor, &length)) {
        char name[96];
        (void)snprintf(name, sizeof name, "%.*s", (int)length, flag);
        if (strstr(name, word) != NULL) {
            me_str what = {0};
            append_rule(kind, rule, &what);
            me_text_entry(name, FLAG_WIDTH, me_str_text(&what), text);
            me_str_fini_piece(&what, text);
            is_found = true;
        }
    }
    return is_found;
}

static bool list_flags(const char *word, me_str *text)
{
    bool is_found = false;
    size_t n_tables = 0;
    const me_flag_table *tables = me_flag_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++) {
        const me_flag_rule *rule = tables[i].rules;
        for (; rule->flags != NULL; rule++) {
            is_found =
                append_flags(tables[i].kind, rule, word, text) || is_found;
        }
    }
    return is_found;
}

me_status me_options_command(const me_cli *cli, me_diag *diag, me_str *text)
{
    const char *word = cli->operand;
    const bool has_options = me_options_list(word, text);
    me_str flags = {.columns = text->columns};
    const bool has_flags = word != NULL && list_flags(word, &flags);
    if (has_flags) {
        me_str_printf(text, "%sFlags of Megatron-LM\n",
                      has_options ? "\n" : "");
        me_str_append(text, me_str_text(&flags));
    }
    const me_status status = me_str_status(&flags);
    me_str_fini(&flags);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for the options");
    }
    return has_options || has_flags
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "%.40s: no option has it in its name or help, and no "
                         "flag in its name",
                         word);
}
