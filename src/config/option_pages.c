/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text_wrap.h"
#include "config/config_private.h"
#include "config/framework.h"
#include "config/said.h"
#include "config/torch/tree.h"

#include <string.h>
#include <strings.h>

static const char *type_name(const me_option *option)
{
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT: return "number";
    case ME_OPTION_SIZE: return "size";
    case ME_OPTION_BOOL: return "bool";
    case ME_OPTION_DOUBLE: return "decimal";
    case ME_OPTION_ENUM: return "word";
    case ME_OPTION_STRING: return "text";
    }
    return "";
}

/** What happens when the option is not given. */
static const char *default_of(const me_option *option)
{
    if (option->zero != NULL) {
        return option->zero;
    }
    return option->type == ME_OPTION_STRING && option->default_text[0] == '\0'
               ? "empty"
               : option->default_text;
}

/** Is @p word anywhere in @p text, in letters of any size? */
static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; *at != '\0'; at++) {
        if (strncasecmp(at, word, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

/** "name  type  what it is", names in a column of @p width. */
static void append_option(const me_option *option, int width, me_str *text)
{
    enum {
        TYPE_WIDTH = 7,
        BETWEEN = 2
    };

    me_str name = {0};
    me_str what = {0};
    me_str_printf(&name, "%-*s  %-*s", width, option->name, TYPE_WIDTH,
                  type_name(option));
    me_str_printf(&what, "%s Default: %s", option->help, default_of(option));
    if (option->words != NULL) {
        me_str_append(&what, "; ");
        me_option_format_range(option, &what);
    }
    me_text_entry(me_str_text(&name), name.length + BETWEEN, me_str_text(&what),
                  text);
    me_str_fini_piece(&name, text);
    me_str_fini_piece(&what, text);
}

bool me_options_list(const char *word, me_str *text)
{
    bool is_found = false;
    size_t count = 0;
    const me_option *options = me_options(&count);
    int width = 0;
    for (size_t i = 0; i < count; i++) {
        const int length = (int)strlen(options[i].name);
        width = length > width ? length : width;
    }
    for (size_t i = 0; i < count; i++) {
        const me_option *option = &options[i];
        if (word != NULL && !has_word(option->name, word) &&
            !has_word(option->help, word)) {
            continue;
        }
        is_found = true;
        append_option(option, width, text);
    }
    return is_found;
}

/** The group of a dotted name: its length. */
static size_t group_length(const me_option *option)
{
    const char *dot = strchr(option->name, '.');
    return dot == NULL ? 0 : (size_t)(dot - option->name);
}

static bool starts_group(const me_option *options, size_t i)
{
    if (i == 0) {
        return true;
    }
    const size_t length = group_length(&options[i]);
    return length != group_length(&options[i - 1]) ||
           memcmp(options[i].name, options[i - 1].name, length) != 0;
}

static void append_markdown_row(const me_option *option, me_str *text)
{
    me_str_printf(text, "| `%s` | ", option->name);
    me_option_format_range(option, text);
    if (option->unit[0] != '\0' && option->type != ME_OPTION_SIZE) {
        me_str_printf(text, " (%s)", option->unit);
    }
    me_str_printf(text, " | %s | %s |\n", default_of(option), option->help);
}

void me_options_markdown(me_str *text)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    me_str_append(
        text,
        "# Options\n\n"
        "Made from the table in `src/config/options.c`; a test holds the two\n"
        "equal. The same names are used in `.cfg` files, by `--set\n"
        "name=value` and in messages. Defaults are Megatron-LM's own.\n"
        "Precedence: default, file, launch command, `--set`.\n");
    for (size_t i = 0; i < count; i++) {
        if (starts_group(options, i)) {
            const size_t length = group_length(&options[i]);
            me_str_append(text, "\n## ");
            if (length == 0) {
                me_str_append(text, "job");
            } else {
                me_str_append_n(text, options[i].name, length);
            }
            me_str_append(text,
                          "\n\n| option | values | default | what it is |\n"
                          "|---|---|---|---|\n");
        }
        append_markdown_row(&options[i], text);
    }
}

/** Of some options 0, or the word that is taken, is a value as well. */
static bool is_not_given(const me_option *option, const me_config *config,
                         const char *value)
{
    const char *none =
        option->type == ME_OPTION_BOOL ? option->default_text : "0";
    return option->zero != NULL && strcmp(value, none) == 0 &&
           (option->min > 0 || !me_option_is_set(option, config));
}

static void append_setting(const me_option *option, const me_config *config,
                           me_str *text)
{
    me_str value = {0};
    me_option_format(option, config, &value);
    const size_t group = group_length(option);
    const char *name = option->name + (group == 0 ? 0 : group + 1);
    const char *indent = group == 0 ? "" : "    ";
    const bool is_quoted = option->type == ME_OPTION_ENUM ||
                           option->type == ME_OPTION_STRING ||
                           option->type == ME_OPTION_SIZE;
    if (me_str_status(&value) != ME_OK) {
        text->status = me_str_status(&value);
    } else if (is_not_given(option, config, me_str_text(&value))) {
        me_str_printf(text, "%s# %s: %s\n", indent, name, option->zero);
    } else {
        me_str_printf(text, "%s%s = ", indent, name);
        if (is_quoted) {
            me_option_append_quoted(me_str_text(&value), text);
        } else {
            me_str_append(text, me_str_text(&value));
        }
        me_str_append(text, ";\n");
    }
    me_str_fini(&value);
}

/** Options from @p i on of one group: as far as the framework looks at them. */
static size_t dump_group(const me_option *options, size_t i, size_t count,
                         const me_config *config, me_str *text)
{
    const size_t group = group_length(&options[i]);
    bool is_open = false;
    size_t end = i;
    do {
        if (!me_framework_is_foreign(config->framework, options[end].name)) {
            if (group != 0 && !is_open) {
                me_str_append(text, "\n");
                me_str_append_n(text, options[i].name, group);
                me_str_append(text, " = {\n");
                is_open = true;
            }
            append_setting(&options[end], config, text);
        }
        end++;
    } while (end < count && !starts_group(options, end) && group != 0);
    me_str_append(text, is_open ? "};\n" : "");
    return end;
}

void me_config_dump(const me_config *config, me_str *text)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count;) {
        i = dump_group(options, i, count, config, text);
    }
    if (config->layers != NULL) {
        me_str_append(text, "\n");
        me_layers_dump(config->layers, text);
    }
    me_said_dump(config, text);
}
