/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clean.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/said.h"
#include "config/torchtitan/torchtitan.h"

#include <stdio.h>
#include <string.h>

static void *field_of(const me_option *option, me_config *config)
{
    return (char *)config + option->offset;
}

static const void *const_field_of(const me_option *option,
                                  const me_config *config)
{
    return (const char *)config + option->offset;
}

static size_t index_of(const me_option *option)
{
    size_t count = 0;
    return (size_t)(option - me_options(&count));
}

static bool set_number(const me_option *option, void *field, const char *text)
{
    uint64_t value = 0;
    const me_status status = option->type == ME_OPTION_SIZE
                                 ? me_parse_bytes(text, &value)
                                 : me_parse_u64(text, &value);
    if (status != ME_OK || value < (uint64_t)option->min ||
        value > (uint64_t)option->max) {
        return false;
    }
    if (option->type == ME_OPTION_INT) {
        const int32_t narrow = (int32_t)value;
        memcpy(field, &narrow, sizeof narrow);
    } else {
        memcpy(field, &value, sizeof value);
    }
    return true;
}

static bool set_double(const me_option *option, void *field, const char *text)
{
    double value = 0.0;
    if (me_parse_double(text, &value) != ME_OK ||
        !(value >= option->min && value <= option->max)) {
        return false;
    }
    value = value == 0.0 ? 0.0 : value; // no negative zero
    memcpy(field, &value, sizeof value);
    return true;
}

static bool set_bool(void *field, const char *text)
{
    const bool value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0) {
        return false;
    }
    memcpy(field, &value, sizeof value);
    return true;
}

static bool set_word(const me_option *option, void *field, const char *text)
{
    for (const me_choice *word = option->words; word->word != NULL; word++) {
        if (strcmp(word->word, text) == 0) {
            memcpy(field, &word->value, option->size);
            return true;
        }
    }
    return false;
}

static bool set_string(const me_option *option, void *field, const char *text)
{
    const size_t length = strlen(text);
    if (length >= option->size || !me_text_is_clean(text)) {
        return false;
    }
    memset(field, 0, option->size);
    memcpy(field, text, length);
    return true;
}

static bool set_field(const me_option *option, void *field, const char *text)
{
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT:
    case ME_OPTION_SIZE: return set_number(option, field, text);
    case ME_OPTION_BOOL: return set_bool(field, text);
    case ME_OPTION_DOUBLE: return set_double(option, field, text);
    case ME_OPTION_ENUM: return set_word(option, field, text);
    case ME_OPTION_STRING: return set_string(option, field, text);
    }
    return false;
}

/** Is it a number of bytes, but of too few? */
static bool is_too_small(const me_option *option, const char *value)
{
    uint64_t bytes = 0;
    return me_parse_bytes(value, &bytes) == ME_OK &&
           (double)bytes < option->min;
}

/** Is it a number of bytes, but of too many? */
static bool is_beyond(const me_option *option, const char *value)
{
    uint64_t bytes = 0;
    const me_status status = me_parse_bytes(value, &bytes);
    return status == ME_ERR_OVERFLOW ||
           (status == ME_OK && (double)bytes > option->max);
}

/** What would be right in place of @p value. */
static void describe_right(const me_option *option, const char *value,
                           me_str *range)
{
    const bool is_size = option->type == ME_OPTION_SIZE;
    const char *unit = is_size ? me_lacking_unit(value) : NULL;
    if (unit != NULL) {
        me_str_printf(range, "at least 1MiB: did you mean %s%s?", value, unit);
    } else if (is_size && is_too_small(option, value)) {
        me_str_printf(range, "at least %lluMiB",
                      (unsigned long long)((uint64_t)option->min >> 20U));
    } else if (is_size && is_beyond(option, value)) {
        me_str_printf(range, "at most %lluTiB: it is out of range",
                      (unsigned long long)((uint64_t)option->max >> 40U));
    } else {
        me_option_format_range(option, range);
    }
}

/** The value comes last in the message, because it may be long. */
static me_status refuse(const me_option *option, const char *value,
                        const me_origin *origin, me_diag *diag)
{
    me_str range = {0};
    describe_right(option, value, &range);
    me_status status = me_str_status(&range);
    if (status == ME_OK && origin->name != NULL) {
        status = me_fail_at(diag, ME_ERR_CONFIG, origin->file, origin->line,
                            "%s %.80s: must be %s", origin->name,
                            origin->value == NULL ? value : origin->value,
                            me_str_text(&range));
        status = me_fail_flag(diag, status, origin->name);
    } else if (status == ME_OK) {
        status = me_fail_at(diag, ME_ERR_CONFIG, origin->file, origin->line,
                            "%s = %.80s: must be %s", option->name, value,
                            me_str_text(&range));
    } else {
        status = me_fail(diag, status, "no memory for an error message");
    }
    me_str_fini(&range);
    return status;
}

me_status me_option_set(const me_option *option, me_config *config,
                        const char *value, const me_origin *origin,
                        me_diag *diag)
{
    if (!set_field(option, field_of(option, config), value)) {
        return refuse(option, value, origin, diag);
    }
    config->own->is_set[index_of(option)] = true;
    me_said_forget(config, option->name);
    return ME_OK;
}

/** A default of 0 is "not given" and the zero that a field begins with. */
bool me_option_is_default(const me_option *option, const me_config *config)
{
    const void *field = const_field_of(option, config);
    if (option->type == ME_OPTION_STRING) {
        return strcmp(field, option->default_text) == 0;
    }
    uint64_t value = 0; // no other type is larger
    if (strcmp(option->default_text, "0") != 0) {
        (void)set_field(option, &value, option->default_text);
    }
    return memcmp(&value, field, option->size) == 0;
}

bool me_option_is_set(const me_option *option, const me_config *config)
{
    return config->own->is_set[index_of(option)];
}

bool me_config_is_set(const me_config *config, const char *name)
{
    const me_option *option = me_option_find(name);
    return option != NULL && me_option_is_set(option, config);
}

me_status me_config_set(me_config *config, const char *name, const char *value,
                        me_diag *diag)
{
    const me_option *option = me_option_find(name);
    if (option == NULL && me_torchtitan_has_key(config, name)) {
        return me_torchtitan_set(config, name, value, diag);
    }
    if (option == NULL) {
        const me_option *nearest = me_option_nearest(name);
        return me_fail(diag, ME_ERR_CONFIG,
                       nearest == NULL
                           ? "unknown option '%.80s' (`memest options` lists "
                             "all)%s"
                           : "unknown option '%.80s': did you mean %s?",
                       name, nearest == NULL ? "" : nearest->name);
    }
    const me_status status =
        me_option_set(option, config, value, &(me_origin){0}, diag);
    return status == ME_OK ? me_titan_said_note(config, name, value, diag)
                           : status;
}

me_status me_config_set_assignment(me_config *config, const char *assignment,
                                   me_diag *diag)
{
    char name[96];
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment ||
        (size_t)(equals - assignment) >= sizeof name) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "'%.80s' is not an assignment: write option=value, "
                       "such as parallel.tensor=2",
                       assignment);
    }
    memcpy(name, assignment, (size_t)(equals - assignment));
    name[equals - assignment] = '\0';
    return me_config_set(config, name, equals + 1, diag);
}

static void format_size(uint64_t bytes, me_str *text)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    me_str_printf(text, "%llu%s", (unsigned long long)bytes, units[unit]);
}

void me_option_format_double(double value, me_str *text)
{
    char digits[40] = "";
    double back = 0.0;
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, value);
        for (char *c = digits; *c != '\0'; c++) {
            if (*c == ',') {
                *c = '.';
            }
        }
        if (me_parse_double(digits, &back) == ME_OK && back == value) {
            break;
        }
    }
    me_str_append(text, digits);
}

static void format_word(const me_option *option, const void *field,
                        me_str *text)
{
    int value = 0;
    memcpy(&value, field, sizeof value);
    for (const me_choice *word = option->words; word->word != NULL; word++) {
        if (word->value == value) {
            me_str_append(text, word->word);
            return;
        }
    }
}

void me_option_format(const me_option *option, const me_config *config,
                      me_str *text)
{
    const void *field = const_field_of(option, config);
    int32_t narrow = 0;
    uint64_t wide = 0;
    double number = 0.0;
    bool flag = false;
    switch (option->type) {
    case ME_OPTION_INT:
        memcpy(&narrow, field, sizeof narrow);
        me_str_printf(text, "%d", (int)narrow);
        break;
    case ME_OPTION_COUNT:
        memcpy(&wide, field, sizeof wide);
        me_str_printf(text, "%llu", (unsigned long long)wide);
        break;
    case ME_OPTION_SIZE:
        memcpy(&wide, field, sizeof wide);
        format_size(wide, text);
        break;
    case ME_OPTION_BOOL:
        memcpy(&flag, field, sizeof flag);
        me_str_append(text, flag ? "true" : "false");
        break;
    case ME_OPTION_DOUBLE:
        memcpy(&number, field, sizeof number);
        me_option_format_double(number, text);
        break;
    case ME_OPTION_ENUM: format_word(option, field, text); break;
    case ME_OPTION_STRING: me_str_append(text, field); break;
    }
}

static void format_words(const me_option *option, me_str *text)
{
    for (const me_choice *word = option->words; word->word != NULL; word++) {
        me_str_printf(text, "%s%s", word == option->words ? "" : ", ",
                      word->word);
    }
}

/** A bound that only the type has is none. */
static void format_real_range(const me_option *option, me_str *text)
{
    if (option->max < ME_OPTION_REAL_MAX) {
        me_str_printf(text, "a number from %.0f to %g", option->min,
                      option->max);
    } else if (option->min > -ME_OPTION_REAL_MAX) {
        me_str_printf(text, "a number of at least %.0f", option->min);
    } else {
        me_str_append(text, "a number");
    }
}

void me_option_format_range(const me_option *option, me_str *text)
{
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT:
        me_str_printf(text, "a whole number from %.0f to %.0f", option->min,
                      option->max);
        break;
    case ME_OPTION_SIZE:
        me_str_append(text, "bytes, or a whole number with KiB, MiB, GiB or "
                            "TiB (GB and the like are not taken: some read "
                            "1000, some 1024)");
        break;
    case ME_OPTION_BOOL: me_str_append(text, "true or false"); break;
    case ME_OPTION_DOUBLE: format_real_range(option, text); break;
    case ME_OPTION_ENUM:
        if (option->words[1].word != NULL) {
            me_str_append(text, "one of ");
        }
        format_words(option, text);
        break;
    case ME_OPTION_STRING:
        me_str_printf(text, "printable text of at most %zu bytes",
                      option->size - 1);
        break;
    }
}

void me_option_append_quoted(const char *value, me_str *text)
{
    me_str_append(text, "\"");
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\') {
            me_str_append(text, "\\");
        }
        me_str_append_n(text, value, 1);
    }
    me_str_append(text, "\"");
}
