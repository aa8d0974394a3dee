/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/torchtitan.h"

#include "base/clean.h"
#include "base/input.h"
#include "base/parse.h"
#include "base/python_number.h"
#include "config/config_private.h"
#include "config/flags.h"
#include "config/torchtitan/torchtitan_private.h"

#include <stdio.h>
#include <string.h>

me_status me_titan_fail(const me_titan_job *job, me_status status,
                        const me_titan_value *value, const char *what)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.60s", value->text);
    me_text_clean(text);
    if (value->line == 0) {
        const bool is_flag = value->name[0] == '-';
        return me_fail(job->diag, status, "%.80s%s%s: %s", value->name,
                       is_flag ? " " : " = ", text, what);
    }
    return me_fail_at(job->diag, status, job->where, value->line,
                      "%.80s = %s: %s", value->name, text, what);
}

static me_status fail_unknown(const me_titan_job *job, const char *table,
                              const char *key, const me_titan_value *value)
{
    me_str what = {0};
    me_str_append(&what, "torchtitan has no such key");
    me_str near = {0};
    if (me_titan_nearest(table, key, &near)) {
        me_str_printf(&what, ": did you mean %s?", me_str_text(&near));
    }
    const me_status status =
        me_titan_fail(job, ME_ERR_CONFIG, value, me_str_text(&what));
    me_str_fini(&near);
    me_str_fini(&what);
    return status;
}

/** What a field takes, where the value is something else; or NULL. */
static const char *misfit(const me_titan_rule *rule, me_toml_type type,
                          const char *text)
{
    uint64_t whole = 0;
    double number = 0;
    switch (rule->type) {
    case ME_TOML_TEXT: return type == ME_TOML_TEXT ? NULL : "must be text";
    case ME_TOML_BOOL:
        return type == ME_TOML_BOOL ? NULL : "must be true or false";
    case ME_TOML_LIST:
        return type == ME_TOML_LIST || type == ME_TOML_TEXT ? NULL
                                                            : "must be a list";
    case ME_TOML_WHOLE:
        return type == ME_TOML_WHOLE && (strcmp(text, "-1") == 0 ||
                                         (me_parse_u64(text, &whole) == ME_OK &&
                                          whole <= (UINT64_C(1) << 28)))
                   ? NULL
                   : "must be a whole number up to 268435456";
    case ME_TOML_DECIMAL:
        return (type == ME_TOML_WHOLE || type == ME_TOML_DECIMAL) &&
                       me_parse_double(text, &number) == ME_OK
                   ? NULL
                   : "must be a number";
    }
    return "is not read";
}

/** Keys of two torchtitans in one job belong to neither. */
static me_status tell_version(me_titan_job *job, const me_titan_rule *rule,
                              const me_titan_value *value)
{
    if ((job->versions & rule->versions) == 0) {
        char what[160];
        (void)snprintf(
            what, sizeof what, "is a key of torchtitan %s, and %.60s one of %s",
            (rule->versions & ME_TITAN_0_2) != 0 ? "0.2" : "of December 2024",
            job->told,
            (rule->versions & ME_TITAN_0_2) != 0 ? "December 2024" : "0.2");
        return me_titan_fail(job, ME_ERR_CONFIG, value, what);
    }
    if (rule->versions != ME_TITAN_ALL) {
        job->versions = rule->versions;
        job->told = value->name;
    }
    return ME_OK;
}

static bool is_neutral(const me_titan_rule *rule, const char *text)
{
    return rule->neutral != NULL &&
           me_words_have(rule->neutral, strlen(rule->neutral), text);
}

/** Gradients are clipped under a limit that is no number of ours as under a large
 *  one. @return @p text, or what stands for it */
static const char *finite(const char *text)
{
    me_str number = {0};
    const bool is_one = me_python_not_finite(text, &number);
    const bool is_negative = me_str_text(&number)[0] == '-';
    me_str_fini(&number);
    return !is_one ? text : is_negative ? "-1e300" : "1e300";
}

static me_status use(me_titan_job *job, const me_titan_rule *rule,
                     me_toml_type type, const me_titan_value *value)
{
    me_config *c = job->config;
    switch (rule->use) {
    case ME_TITAN_SETS: {
        me_titan_value taken = *value;
        taken.text =
            type == ME_TOML_DECIMAL ? finite(value->text) : value->text;
        const char *what = misfit(rule, type, taken.text);
        if (what != NULL) {
            return me_titan_fail(job, ME_ERR_CONFIG, value, what);
        }
        job->values[rule->field] = taken;
        return me_flag_list_add(c, &c->modelled, value->name, NULL, job->diag);
    }
    case ME_TITAN_NO_EFFECT: break;
    case ME_TITAN_UNMODELLED:
        if (!is_neutral(rule, value->text)) {
            return me_config_add_not_modelled(c, value->name, rule->note,
                                              rule->effect, job->diag);
        }
        break;
    case ME_TITAN_REFUSED:
        if (!is_neutral(rule, value->text)) {
            return me_titan_fail(job, ME_ERR_UNSUPPORTED, value, rule->note);
        }
        break;
    }
    return me_flag_list_add(c, &c->no_effect, value->name,
                            rule->use == ME_TITAN_NO_EFFECT ? rule->note
                                                            : "at this value",
                            job->diag);
}

static me_status take(me_titan_job *job, const char *table, const char *key,
                      me_toml_type type, const me_titan_value *value)
{
    const me_titan_rule *rule = me_titan_rule_find(table, key);
    if (rule == NULL) {
        return fail_unknown(job, table, key, value);
    }
    const me_status status = tell_version(job, rule, value);
    return status == ME_OK ? use(job, rule, type, value) : status;
}

/** A table with a typing error must not pass for one without keys. */
static me_status check_tables(const me_titan_job *job, const me_toml *toml)
{
    for (uint32_t i = 0; i < toml->n_tables; i++) {
        const me_toml_table *table = &toml->tables[i];
        if (table->kind == ME_TOML_TABLE_WITHIN ||
            me_titan_table_is_known(table->name)) {
            continue; // the head that it is within is checked
        }
        const char *near = me_titan_nearest_table(table->name);
        return me_fail_at(job->diag, ME_ERR_CONFIG, job->where, table->line,
                          "[%.60s] is no table of torchtitan's%s%s%s",
                          table->name, near == NULL ? "" : ": did you mean [",
                          near == NULL ? "" : near, near == NULL ? "" : "]?");
    }
    return toml->count > 0 ? ME_OK
                           : me_fail_at(job->diag, ME_ERR_CONFIG, job->where, 0,
                                        "no job: it has no key, such as "
                                        "training.local_batch_size");
}

static me_status take_file(me_titan_job *job, const char *where,
                           const char *text, size_t length)
{
    me_arena *arena = job->config->own->text;
    me_toml toml;
    job->where = where;
    me_status status =
        me_toml_read(arena, where, text, length, job->diag, &toml);
    if (status == ME_OK) {
        status = check_tables(job, &toml);
    }
    for (uint32_t i = 0; status == ME_OK && i < toml.count; i++) {
        const me_toml_value *v = &toml.values[i];
        char name[160];
        (void)snprintf(name, sizeof name, "%.79s%s%.79s", v->table,
                       v->table[0] == '\0' ? "" : ".", v->key);
        const me_titan_value value = {
            .text = v->text,
            .name = me_arena_strdup(arena, name),
            .line = v->line,
        };
        status =
            value.name == NULL
                ? me_fail(job->diag, ME_ERR_NOMEM, "no memory for %.80s", where)
                : take(job, v->table, v->key, v->type, &value);
    }
    return status;
}

me_status me_torchtitan_read(me_config *config, const char *where,
                             const char *text, size_t length, me_diag *diag)
{
    me_titan_job job = {
        .config = config, .versions = ME_TITAN_ALL, .diag = diag};
    const me_status status = take_file(&job, where, text, length);
    return status == ME_OK ? me_titan_keep_and_apply(&job) : status;
}

/** The type that a flag's value has as it is written: text that could be
 *  something else is what its key wants. */
static me_toml_type type_of(const me_titan_rule *rule, const char *text)
{
    uint64_t whole = 0;
    double number = 0;
    if (rule != NULL && rule->type == ME_TOML_TEXT) {
        return ME_TOML_TEXT;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        return ME_TOML_BOOL;
    }
    if (me_parse_u64(text, &whole) == ME_OK || strcmp(text, "-1") == 0) {
        return ME_TOML_WHOLE;
    }
    return me_parse_double(text, &number) == ME_OK ? ME_TOML_DECIMAL
                                                   : ME_TOML_TEXT;
}

/** `--table.key`, its parts and value. */
typedef struct flag {
    char table[80];
    char key[80];
    char name[168]; /**< as written, without a value */
    const char *value;
} flag;

/** "True" is how Python writes what TOML writes "true". */
static const char *lower(const char *value)
{
    if (strcmp(value, "True") == 0) {
        return "true";
    }
    return strcmp(value, "False") == 0 ? "false" : value;
}

/** One flag, and how many words it has. */
static me_status split(const me_titan_job *job, int argc,
                       const char *const *argv, flag *flag_out,
                       int *n_words_out)
{
    *flag_out = (flag){.value = NULL};
    const size_t length = strcspn(argv[0], "=");
    (void)snprintf(flag_out->name, sizeof flag_out->name, "%.*s",
                   (int)(length < 160 ? length : 160), argv[0]);
    me_text_clean(flag_out->name);
    const char *dot = strrchr(flag_out->name, '.');
    if (strcmp(flag_out->name, "--module") == 0 ||
        strcmp(flag_out->name, "--config") == 0) {
        return me_fail(job->diag, ME_ERR_UNSUPPORTED,
                       "'%s' picks a configuration that torchtitan has as a "
                       "program since 2026: memest reads versions 0.1 and 0.2, "
                       "whose jobs are --job.config_file FILE.toml",
                       flag_out->name);
    }
    if (strncmp(flag_out->name, "--", 2) != 0 || dot == NULL) {
        return me_fail(job->diag, ME_ERR_SYNTAX,
                       "'%.80s' is no flag of torchtitan's: those are "
                       "--table.key, such as --training.seq_len",
                       flag_out->name);
    }
    (void)snprintf(flag_out->table, sizeof flag_out->table, "%.*s",
                   (int)(dot - flag_out->name - 2), flag_out->name + 2);
    (void)snprintf(flag_out->key, sizeof flag_out->key, "%.79s", dot + 1);
    for (char *c = flag_out->key; *c != '\0'; c++) {
        if (*c == '-') {
            *c = '_';
        }
    }
    if (argv[0][length] == '=') {
        flag_out->value = argv[0] + length + 1;
        *n_words_out = 1;
        return ME_OK;
    }
    if (argc > 1 && strncmp(argv[1], "--", 2) != 0) {
        flag_out->value = argv[1];
        *n_words_out = 2;
        return ME_OK;
    }
    const bool is_negated = strncmp(flag_out->key, "no_", 3) == 0;
    if (is_negated) {
        memmove(flag_out->key, flag_out->key + 3, strlen(flag_out->key) - 2);
    }
    flag_out->value = is_negated ? "false" : "true";
    *n_words_out = 1;
    return ME_OK;
}

/** A number in the form that a file has it in; all else as it is. */
static char *copy_value(me_arena *arena, const me_titan_rule *rule,
                        const char *value)
{
    me_str number = {0};
    const bool is_decimal = rule != NULL && rule->type == ME_TOML_DECIMAL;
    value = is_decimal ? finite(value) : value;
    const bool is_number = (rule != NULL && rule->type == ME_TOML_WHOLE &&
                            me_python_int(value, &number)) ||
                           (is_decimal && me_python_float(value, &number));
    char *copy =
        me_str_status(&number) != ME_OK
            ? NULL
            : me_arena_strdup(arena, is_number ? me_str_text(&number) : value);
    me_str_fini(&number);
    return copy;
}

me_status me_titan_take_text(me_titan_job *job, const char *table,
                             const char *key, const char *name,
                             const char *value)
{
    me_arena *arena = job->config->own->text;
    const me_titan_rule *rule = me_titan_rule_find(table, key);
    const me_titan_value taken = {
        .text = copy_value(arena, rule, lower(value)),
        .name = me_arena_strdup(arena, name),
    };
    if (taken.text == NULL || taken.name == NULL) {
        return me_fail(job->diag, ME_ERR_NOMEM, "no memory for the flags");
    }
    return take(job, table, key, type_of(rule, taken.text), &taken);
}

static bool is_config_file(const flag *f)
{
    return strcmp(f->table, "job") == 0 && strcmp(f->key, "config_file") == 0;
}

/** All flags; those that name the file, or all the others. */
static me_status take_flags(me_titan_job *job, int argc,
                            const char *const *argv, bool of_file)
{
    me_status status = ME_OK;
    for (int at = 0; at < argc && status == ME_OK;) {
        flag f;
        int n_words = 0;
        status = split(job, argc - at, argv + at, &f, &n_words);
        if (status != ME_OK) {
            return status;
        }
        at += n_words;
        if (is_config_file(&f) && of_file) {
            me_str bytes = {0};
            status =
                me_input_read(f.value, ME_INPUT_MAX_BYTES, job->diag, &bytes);
            if (status == ME_OK) {
                status =
                    take_file(job, f.value, me_str_text(&bytes), bytes.length);
            }
            me_str_fini(&bytes);
        } else if (!is_config_file(&f) && !of_file) {
            status = me_titan_take_text(job, f.table, f.key, f.name, f.value);
        }
    }
    return status;
}

me_status me_torchtitan_read_flags(me_config *config, int argc,
                                   const char *const *argv, me_diag *diag)
{
    me_titan_job job = {
        .config = config, .versions = ME_TITAN_ALL, .diag = diag};
    me_status status = take_flags(&job, argc, argv, true);
    if (status == ME_OK) {
        status = take_flags(&job, argc, argv, false);
    }
    return status == ME_OK ? me_titan_keep_and_apply(&job) : status;
}
