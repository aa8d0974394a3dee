/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

#include "base/nearest.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

static const me_flag_table tables[] = {
    {ME_FLAG_MODELLED, me_flags_modelled, false},
    {ME_FLAG_NOT_MODELLED, me_flags_not_modelled, false},
    {ME_FLAG_NOT_MODELLED, me_flags_not_modelled_more, false},
    {ME_FLAG_NO_EFFECT, me_flags_no_effect, false},
    {ME_FLAG_REFUSED, me_flags_refused, false},
    {ME_FLAG_REMOVED, me_flags_removed, false},
    {ME_FLAG_MODELLED, me_flags_forks, true},
    {ME_FLAG_NOT_MODELLED, me_flags_forks_not_modelled, true},
    {ME_FLAG_NO_EFFECT, me_flags_forks_no_effect, true},
};

enum {
    N_TABLES = sizeof tables / sizeof tables[0]
};

const me_flag_table *me_flag_tables(size_t *count_out)
{
    *count_out = N_TABLES;
    return tables;
}

const char *me_flag_next(const char **cursor, size_t *length_out)
{
    size_t length = 0;
    const char *flag = me_name_next(cursor, &length);
    if (flag != NULL) {
        *length_out = strcspn(flag, ": ");
    }
    return flag;
}

/** Is @p flag, of @p length, the name, or a beginning of it with a `*`? */
static bool is_called(const char *flag, size_t length, const char *name)
{
    return flag[length - 1] == '*'
               ? strncmp(flag, name, length - 1) == 0
               : strlen(name) == length && memcmp(flag, name, length) == 0;
}

static bool find_in_rule(const me_flag_rule *rule, const char *name,
                         me_flag *flag_out)
{
    const char *cursor = rule->flags;
    size_t length = 0;
    for (const char *flag = me_flag_next(&cursor, &length); flag != NULL;
         flag = me_flag_next(&cursor, &length)) {
        if (is_called(flag, length, name)) {
            flag_out->rule = rule;
            flag_out->values = flag[length] == ':' ? flag + length + 1 : "";
            return true;
        }
    }
    return false;
}

bool me_flag_find(const char *name, me_flag *flag_out)
{
    for (size_t i = 0; i < N_TABLES; i++) {
        const me_flag_rule *rule = tables[i].rules;
        for (; rule->flags != NULL; rule++) {
            if (find_in_rule(rule, name, flag_out)) {
                flag_out->kind = tables[i].kind;
                flag_out->is_of_fork = tables[i].is_of_forks;
                return true;
            }
        }
    }
    return false;
}

/** Offers all flags of a rule; the best one so far is in *best_out. */
static void offer_rule(const me_flag_rule *rule, me_nearest *nearest,
                       const char **best_out, size_t *length_out)
{
    const char *cursor = rule->flags;
    size_t length = 0;
    for (const char *flag = me_flag_next(&cursor, &length); flag != NULL;
         flag = me_flag_next(&cursor, &length)) {
        char known[96];
        (void)snprintf(known, sizeof known, "%.*s", (int)length, flag);
        if (me_nearest_offer(nearest, known)) {
            *best_out = flag;
            *length_out = length;
        }
    }
}

const char *me_flag_nearest(const char *name, size_t *length_out)
{
    const char *best = NULL;
    me_nearest nearest = me_nearest_begin(name);
    for (size_t i = 0; i < N_TABLES; i++) {
        const me_flag_rule *rule = tables[i].rules;
        for (; rule->flags != NULL; rule++) {
            offer_rule(rule, &nearest, &best, length_out);
        }
    }
    return best;
}

void me_flag_append_needs(const me_flag_rule *rule, me_str *text)
{
    const bool is_negated = rule->needs[0] == '!';
    me_str_printf(text, "%s %s", is_negated ? "not with" : "only with",
                  rule->needs + is_negated);
}

bool me_words_have(const char *words, size_t length, const char *value)
{
    const size_t value_length = strlen(value);
    size_t begin = 0;
    while (begin <= length) {
        size_t end = begin;
        while (end < length && words[end] != '|') {
            end++;
        }
        if (end - begin == value_length &&
            memcmp(words + begin, value, value_length) == 0) {
            return true;
        }
        begin = end + 1;
    }
    return false;
}
