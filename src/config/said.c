/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/said.h"

#include "base/parse.h"
#include "base/size.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"
#include "config/said_vocabulary.h"

#include <stdio.h>
#include <string.h>

enum {
    N_LISTS = ME_CONFIG_SAID_LISTS
};

/** What an entry of a list is made of. */
typedef struct form {
    const char *list;
    const char *name; /**< of the entry's first text; NULL: it has none */
    const char *note; /**< of its second */
    bool may_lack_note;
    bool has_effect; /**< two words behind the texts; without: unknown */
} form;

static const form forms[N_LISTS] = {
    {"not_modelled", "flag", "note", true, true},
    {"environment", "name", "value", false, false},
    {"assumptions", NULL, "text", false, false},
};

static me_flag_list *list_at(me_config *config, int i)
{
    me_flag_list *const lists[N_LISTS] = {
        &config->not_modelled, &config->environment, &config->assumptions};
    return lists[i];
}

void me_said_settle(me_config *config)
{
    for (int i = 0; i < N_LISTS; i++) {
        config->own->n_said[i] = list_at(config, i)->count;
    }
}

/** Is an option among those that an assumption rests on? */
static bool rests_on(const me_flag_note *said, const char *option)
{
    const char *names = said->flag;
    size_t length = 0;
    bool is = false;
    for (const char *at = me_name_next(&names, &length); !is && at != NULL;
         at = me_name_next(&names, &length)) {
        is = strncmp(at, option, length) == 0 && option[length] == '\0';
    }
    return is;
}

void me_said_forget(me_config *config, const char *option)
{
    me_flag_list *list = &config->assumptions;
    int32_t n = 0;
    if (strcmp(option, "model.vocab_size") == 0) {
        config->own->vocabulary.is_decided = false;
    }
    for (int32_t i = 0; i < list->count; i++) {
        if (!rests_on(&list->flags[i], option)) {
            list->flags[n++] = list->flags[i];
        }
    }
    list->count = n;
}

bool me_said_assumes(const me_config *config, const char *option)
{
    const me_flag_list *list = &config->assumptions;
    bool is = false;
    for (int32_t i = 0; !is && i < list->count; i++) {
        is = rests_on(&list->flags[i], option);
    }
    return is;
}

/** `option=value`. */
static void append_value(const me_option *option, const me_config *config,
                         me_str *text)
{
    me_str_printf(text, "%s=", option->name);
    me_option_format(option, config, text);
}

/** What an assumption rests on, a text for each option. */
static void dump_rests(const me_config *config, const char *options,
                       me_str *text)
{
    size_t length = 0;
    int n = 0;
    me_str_append(text, " rests_on = {");
    for (const char *at = me_name_next(&options, &length); at != NULL;
         at = me_name_next(&options, &length)) {
        char name[80];
        me_str value = {0};
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        append_value(me_option_find(name), config, &value);
        me_str_printf(text, " o%d = ", ++n);
        me_option_append_quoted(me_str_text(&value), text);
        me_str_append(text, ";");
        if (me_str_status(&value) != ME_OK) {
            text->status = me_str_status(&value);
        }
        me_str_fini(&value);
    }
    me_str_append(text, " };");
}

static void dump_text(const char *key, const char *value, me_str *text)
{
    if (key != NULL && value != NULL) {
        me_str_printf(text, " %s = ", key);
        me_option_append_quoted(value, text);
        me_str_append(text, ";");
    }
}

/** The parts of an entry. */
static void dump_entry(const me_config *config, int list,
                       const me_flag_note *said, me_str *text)
{
    dump_text(forms[list].name, said->flag, text);
    dump_text(forms[list].note, said->note, text);
    if (forms[list].has_effect) {
        dump_text("lower", me_reach_name(said->effect.lower), text);
        dump_text("higher", me_reach_name(said->effect.higher), text);
    }
    if (forms[list].name == NULL && said->flag[0] != '\0') {
        dump_rests(config, said->flag, text);
    }
}

void me_said_dump(const me_config *config, me_str *text)
{
    const me_flag_list *const lists[N_LISTS] = {
        &config->not_modelled, &config->environment, &config->assumptions};
    const char *sign = config->own->fork_sign;
    bool is_open = sign != NULL || me_said_vocabulary_holds(config);
    me_str_append(text, is_open ? "\nlaunch = {\n" : "");
    if (sign != NULL) {
        me_str_append(text, "   ");
        dump_text("fork", sign, text);
        me_str_append(text, "\n");
    }
    me_said_vocabulary_dump(config, text);
    for (int i = 0; i < N_LISTS; i++) {
        int n = 0;
        for (int32_t k = 0; k < lists[i]->count; k++) {
            const me_flag_note *said = &lists[i]->flags[k];
            if (k >= config->own->n_said[i] &&
                (forms[i].name != NULL || said->flag[0] == '\0')) {
                continue; // the job that is read derives it
            }
            if (n++ == 0) {
                me_str_printf(text, "%s    %s = {\n",
                              is_open ? "" : "\nlaunch = {\n", forms[i].list);
                is_open = true;
            }
            me_str_printf(text, "        n%d = {", n);
            dump_entry(config, i, said, text);
            me_str_append(text, " };\n");
        }
        me_str_append(text, n > 0 ? "    };\n" : "");
    }
    me_str_append(text, is_open ? "};\n" : "");
}

/** A text of an entry; NULL: it is not there. */
static const char *text_of(const config_setting_t *entry, const char *key)
{
    const char *text = NULL;
    return key != NULL && config_setting_is_group(entry) != 0 &&
                   config_setting_lookup_string(entry, key, &text) ==
                       CONFIG_TRUE
               ? text
               : NULL;
}

/** How many of the two words of an effect are there; -1: one is no word. */
static int read_effect(const config_setting_t *entry, me_effect *effect_out)
{
    const char *lower = text_of(entry, "lower");
    const char *higher = text_of(entry, "higher");
    if ((lower != NULL && !me_reach_find(lower, &effect_out->lower)) ||
        (higher != NULL && !me_reach_find(higher, &effect_out->higher))) {
        return -1;
    }
    return (lower != NULL) + (higher != NULL);
}

/** The options that an assumption rests on.
 *  @param options_out  their names; nothing behind it: it rests on none
 *  @param holds_out    have all the values that were dumped with them?
 *  @return are they well formed? */
static bool read_rests(const me_config *config, const config_setting_t *rests,
                       me_str *options_out, bool *holds_out)
{
    *holds_out = true;
    const int n = config_setting_length(rests);
    bool is_good = config_setting_is_group(rests) == CONFIG_TRUE && n > 0;
    for (int i = 0; is_good && i < n; i++) {
        const char *text = config_setting_get_string_elem(rests, i);
        char name[80] = "";
        if (text != NULL) {
            (void)snprintf(name, sizeof name, "%.*s",
                           (int)me_min_u64(strcspn(text, "="), 79), text);
        }
        const me_option *option = me_option_find(name);
        is_good = text != NULL && option != NULL;
        if (is_good) {
            me_str now = {0};
            append_value(option, config, &now);
            *holds_out &= strcmp(me_str_text(&now), text) == 0;
            me_str_fini(&now);
            me_str_printf(options_out, "%s%s", i == 0 ? "" : " ", name);
        }
    }
    return is_good;
}

static me_status fail_form(const form *f, const config_setting_t *entry,
                           const char *where, me_diag *diag)
{
    return me_fail_at(
        diag, ME_ERR_CONFIG, where, me_conf_line(entry),
        "launch.%s: an entry is { %s%s%s = \"…\";%s }", f->list,
        f->name == NULL ? "" : f->name, f->name == NULL ? "" : " = \"…\"; ",
        f->note, f->has_effect ? " lower = \"any\"; higher = \"none\";" : "");
}

/** An assumption, which may rest on options; once they have other values it is
 *  none. */
static me_status read_assumption(me_config *config,
                                 const config_setting_t *entry,
                                 const config_setting_t *rests,
                                 const char *where, me_diag *diag)
{
    const form *f = &forms[N_LISTS - 1];
    const char *text = text_of(entry, f->note);
    me_str options = {0};
    bool holds = true;
    const bool is_good =
        text != NULL && config_setting_length(entry) == 1 + (rests != NULL) &&
        (rests == NULL || read_rests(config, rests, &options, &holds));
    me_status status = me_str_status(&options);
    if (!is_good) {
        status = fail_form(f, entry, where, diag);
    } else if (status != ME_OK) {
        status = me_fail(diag, status, "no memory for %.80s", where);
    } else if (holds) {
        status = me_flag_list_add(config, &config->assumptions,
                                  me_str_text(&options), text, diag);
    }
    me_str_fini(&options);
    return status;
}

static me_status read_entry(me_config *config, int list,
                            const config_setting_t *entry, const char *where,
                            me_diag *diag)
{
    const form *f = &forms[list];
    if (f->name == NULL) {
        return read_assumption(
            config, entry,
            config_setting_is_group(entry) == 0
                ? NULL
                : config_setting_get_member(entry, "rests_on"),
            where, diag);
    }
    const char *name = text_of(entry, f->name);
    const char *note = text_of(entry, f->note);
    me_effect effect = {ME_REACH_UNKNOWN, ME_REACH_UNKNOWN};
    const int n_words = f->has_effect ? read_effect(entry, &effect) : 0;
    const int n_texts = (name != NULL) + (note != NULL) + n_words;
    const bool is_whole =
        n_words >= 0 && name != NULL && (note != NULL || f->may_lack_note);
    if (config_setting_is_group(entry) == 0 || !is_whole ||
        config_setting_length(entry) != n_texts) {
        return fail_form(f, entry, where, diag);
    }
    me_flag_list *to = list_at(config, list);
    const me_status status = me_flag_list_add(config, to, name, note, diag);
    if (status == ME_OK && f->has_effect) {
        to->flags[to->count - 1].effect = effect;
    }
    return status;
}

static int find_list(const char *name)
{
    int i = 0;
    while (i < N_LISTS && strcmp(forms[i].list, name) != 0) {
        i++;
    }
    return i;
}

me_status me_said_read(me_config *config, const config_setting_t *group,
                       const char *where, me_diag *diag)
{
    me_status status = ME_OK;
    const int n = config_setting_length(group);
    for (int i = 0; status == ME_OK && i < n; i++) {
        const config_setting_t *list =
            config_setting_get_elem(group, (unsigned)i);
        const char *sign = config_setting_get_string(list);
        if (sign != NULL && strcmp(config_setting_name(list), "fork") == 0) {
            status = me_megatron_keep_sign(config, sign, diag);
            continue;
        }
        if (strcmp(config_setting_name(list), "vocabulary") == 0) {
            status = me_said_vocabulary_read(config, list, where, diag);
            continue;
        }
        const int which = find_list(config_setting_name(list));
        if (which == N_LISTS || config_setting_is_group(list) == 0) {
            return me_fail_at(diag, ME_ERR_CONFIG, where, me_conf_line(list),
                              "launch.%.60s: the groups of launch are "
                              "not_modelled, environment, assumptions and "
                              "vocabulary, beside the text fork",
                              config_setting_name(list));
        }
        const int count = config_setting_length(list);
        for (int k = 0; status == ME_OK && k < count; k++) {
            status = read_entry(config, which,
                                config_setting_get_elem(list, (unsigned)k),
                                where, diag);
        }
    }
    return status;
}
