/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "config/config_private.h"
#include "config/flags.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_' || c == '.';
}

/** Where a text has the name of an option, as a whole, from @p from on; NULL:
 *  nowhere. */
static const char *find_name(const char *from, const char *text,
                             const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(from, name); at != NULL;
         at = strstr(at + 1, name)) {
        if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[length])) {
            return at;
        }
    }
    return NULL;
}

/** What a message says of options that it does not name. */
static const struct {
    const char *said;
    const char *options; /**< blanks between them */
} told[] = {
    {"parallel.virtual_pipeline",
     "parallel.num_layers_per_virtual_pipeline_stage "
     "parallel.pipeline_layout"},
    {"with what parallel.account_for_", "parallel.account_for_embedding_in_"
                                        "pipeline_split "
                                        "parallel.account_for_loss_in_"
                                        "pipeline_split"},
    {"number of micro-batches = ",
     "train.micro_batch_size train.global_batch_size"},
    {"micro-batches in groups",
     "train.micro_batch_size train.global_batch_size"},
    {"micro-batches of evaluation",
     "train.global_batch_size train.eval_micro_batch_size "
     "train.eval_global_batch_size"},
};

/** Is a message about an option? */
static bool is_about(const char *text, const char *option)
{
    bool is_told = false;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        is_told = is_told ||
                  (me_names_have(told[i].options, option, strlen(option)) &&
                   strstr(text, told[i].said) != NULL);
    }
    return is_told || find_name(text, text, option) != NULL;
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

/** Is an option what a message says has to be given, "… needs A = true and B = 2",
 *  "give A"? @p at  where its name stands */
static bool is_asked_at(const char *text, const char *at)
{
    static const char *const verbs[] = {"needs ", "give "};
    static const char also[] = " and ";
    const size_t before = (size_t)(at - text);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const char *verb = strstr(text, verbs[i]);
        const size_t length = strlen(verbs[i]);
        if (verb == NULL || verb + length > at) {
            continue;
        }
        const size_t gap = (size_t)(at - verb) - length;
        const bool is_next =
            before >= sizeof also - 1 &&
            strncmp(at - (sizeof also - 1), also, sizeof also - 1) == 0 &&
            strcspn(verb + length, "(,:;") >= gap;
        if (gap == 0 || is_next) {
            return true;
        }
    }
    return false;
}

/** Does a rule's flag give what is asked behind an option's name, " = true"? */
static bool gives(const me_flag_rule *rule, const char *behind)
{
    if (rule->constant == NULL) {
        return true;
    }
    if (strncmp(behind, " = ", 3) != 0) {
        return strcmp(rule->constant, "true") == 0;
    }
    const size_t length = strcspn(behind + 3, " ,:;()");
    return strlen(rule->constant) == length &&
           strncmp(rule->constant, behind + 3, length) == 0;
}

/** Is there a flag among those of the launch command that sets an option? */
static bool is_given(const me_config *config, const char *option)
{
    me_str given = {0};
    for (const me_flag_rule *r = me_flags_modelled; r->flags != NULL; r++) {
        if (r->option != NULL && strcmp(r->option, option) == 0) {
            append_given(config, r, &given);
        }
    }
    const bool has_one = given.length > 0;
    me_str_fini(&given);
    return has_one;
}

/** Append the flag that gives what a message asks for, if neither the command has
 *  one of that option nor the message. */
static void append_asked(const me_config *config, const char *text,
                         const me_flag_rule *rule, me_str *flags)
{
    char name[96];
    const char *cursor = rule->flags;
    size_t length = 0;
    const char *flag = me_flag_next(&cursor, &length);
    const char *at = find_name(text, text, rule->option);
    while (at != NULL && !is_asked_at(text, at)) {
        at = find_name(at + 1, text, rule->option);
    }
    if (flag == NULL || at == NULL || !gives(rule, at + strlen(rule->option)) ||
        is_given(config, rule->option)) {
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)length, flag);
    if (strstr(text, name) == NULL &&
        strstr(me_str_text(flags), name) == NULL) {
        me_str_printf(flags, "%s%s", flags->length == 0 ? "" : ", ", name);
    }
}

void me_config_name_flags(const me_config *config, me_diag *diag)
{
    me_str flags = {0};
    if (diag == NULL || config->modelled.count == 0 ||
        (diag->status != ME_ERR_CONFIG && diag->status != ME_ERR_UNSUPPORTED)) {
        return;
    }
    for (const me_flag_rule *r = me_flags_modelled; r->flags != NULL; r++) {
        if (r->option != NULL && is_about(diag->text, r->option)) {
            append_given(config, r, &flags);
            append_asked(config, diag->text, r, &flags);
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
