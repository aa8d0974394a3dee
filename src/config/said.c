/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/said.h"

#include "config/config_private.h"

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

static void dump_text(const char *key, const char *value, me_str *text)
{
    if (key != NULL && value != NULL) {
        me_str_printf(text, " %s = ", key);
        me_option_append_quoted(value, text);
        me_str_append(text, ";");
    }
}

void me_said_dump(const me_config *config, me_str *text)
{
    const me_flag_list *const lists[N_LISTS] = {
        &config->not_modelled, &config->environment, &config->assumptions};
    bool is_open = false;
    for (int i = 0; i < N_LISTS; i++) {
        const int32_t n = config->own->n_said[i];
        if (n == 0) {
            continue;
        }
        me_str_printf(text, "%s    %s = {\n", is_open ? "" : "\nlaunch = {\n",
                      forms[i].list);
        is_open = true;
        for (int32_t k = 0; k < n; k++) {
            const me_flag_note *said = &lists[i]->flags[k];
            me_str_printf(text, "        n%d = {", (int)k + 1);
            dump_text(forms[i].name, said->flag, text);
            dump_text(forms[i].note, said->note, text);
            if (forms[i].has_effect) {
                dump_text("lower", me_reach_name(said->effect.lower), text);
                dump_text("higher", me_reach_name(said->effect.higher), text);
            }
            me_str_append(text, " };\n");
        }
        me_str_append(text, "    };\n");
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

static me_status read_entry(me_config *config, int list,
                            const config_setting_t *entry, const char *where,
                            me_diag *diag)
{
    const form *f = &forms[list];
    const char *name = text_of(entry, f->name);
    const char *note = text_of(entry, f->note);
    me_effect effect = {ME_REACH_UNKNOWN, ME_REACH_UNKNOWN};
    const int n_words = f->has_effect ? read_effect(entry, &effect) : 0;
    const int n_texts = (name != NULL) + (note != NULL) + n_words;
    const bool is_whole = n_words >= 0 && (name != NULL || f->name == NULL) &&
                          (note != NULL || f->may_lack_note);
    if (config_setting_is_group(entry) == 0 || !is_whole ||
        config_setting_length(entry) != n_texts) {
        return me_fail_at(diag, ME_ERR_CONFIG, where, me_conf_line(entry),
                          "launch.%s: an entry is { %s%s%s = \"…\";%s }",
                          f->list, f->name == NULL ? "" : f->name,
                          f->name == NULL ? "" : " = \"…\"; ", f->note,
                          f->has_effect ? " lower = \"any\"; higher = \"none\";"
                                        : "");
    }
    me_flag_list *to = list_at(config, list);
    const me_status status =
        me_flag_list_add(config, to, name == NULL ? "" : name, note, diag);
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
        const int which = find_list(config_setting_name(list));
        if (which == N_LISTS || config_setting_is_group(list) == 0) {
            return me_fail_at(diag, ME_ERR_CONFIG, where, me_conf_line(list),
                              "launch.%.60s: the groups of launch are "
                              "not_modelled, environment and assumptions",
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
