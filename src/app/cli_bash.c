/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"
#include "app/cli_pages.h"
#include "config/options.h"
#include "parallel/schedule.h"
#include "search/space.h"

#include <ctype.h>
#include <string.h>

/** A word that can be typed as it is, and no placeholder such as FILE. */
static bool is_literal(const char *word, size_t length)
{
    bool has_lower = false;
    for (size_t i = 0; i < length; i++) {
        if (isalnum((unsigned char)word[i]) == 0 && word[i] != '_') {
            return false;
        }
        has_lower = has_lower || islower((unsigned char)word[i]) != 0;
    }
    return has_lower || (length == 1 && word[0] == 'B');
}

void me_cli_append_words(me_str *text, const char *value)
{
    while (*value != '\0') {
        const size_t length = strcspn(value, "|");
        if (is_literal(value, length)) {
            me_str_append(text, " ");
            me_str_append_n(text, value, length);
        }
        value += length + (value[length] == '|');
    }
}

const char *me_cli_listed(const me_cli_flag *f)
{
    static const struct {
        const char *flag;
        const char *listed;
    } known[] = {
        {"--model", "models"},
        {"--device", "cards"},
        {"--machine", "machines"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].flag, f->name) == 0) {
            return known[i].listed;
        }
    }
    return NULL;
}

bool me_cli_takes_file(const char *value)
{
    return strstr(value, "FILE") != NULL;
}

void me_cli_append_schedules(me_str *text)
{
    const me_schedule *schedule = NULL;
    for (uint32_t i = 0; (schedule = me_schedule_at(i)) != NULL; i++) {
        me_str_printf(text, " %s", schedule->name);
    }
}

void me_cli_append_options(me_str *text, const char *line_begin)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (size_t i = 0; i < count; i++) {
        me_str_printf(text, "%s%s=", i % 3 == 0 ? line_begin : " ",
                      options[i].name);
    }
}

void me_cli_append_axes(me_str *text, const me_cli_flag *f)
{
    const char *name = NULL;
    for (uint32_t i = 0;
         f->kind == FLAG_SPACE && (name = me_space_several_at(i)) != NULL;
         i++) {
        me_str_printf(text, " %s=", name);
    }
}

/** What can follow a flag. */
static void append_values(me_str *text, const me_cli_flag *f)
{
    me_str_printf(text, "    %s%s%s) words=\"",
                  f->short_name == NULL ? "" : f->short_name,
                  f->short_name == NULL ? "" : " | ", f->name);
    switch (f->kind) {
    case FLAG_SCHEDULE: me_cli_append_schedules(text); break;
    case FLAG_SET:
    case FLAG_SPACE:
    case FLAG_VARIANT:
        me_str_append(text, "$options");
        me_cli_append_axes(text, f);
        break;
    case FLAG_FORMAT: me_str_append(text, "$formats"); break;
    case FLAG_TEXT:
    case FLAG_NAME:
    case FLAG_NUMBER:
    case FLAG_COUNT:
    case FLAG_SWITCH: me_cli_append_words(text, f->value); break;
    }
    if (me_cli_listed(f) != NULL) {
        me_str_printf(text, " $(_memest_names %s)", me_cli_listed(f));
    }
    me_str_append(text, "\" ;;\n");
}

static void append_cases(me_str *text)
{
    const me_cli_flag *f = NULL;
    me_str_append(text, "    local words=none options=\"");
    me_cli_append_options(text, "\n            ");
    me_str_append(text, "\"\n    case $before in\n");
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (f->value != NULL) {
            append_values(text, f);
        }
    }
    me_str_append(text, "    esac\n");
}

static void append_flags(me_str *text, const me_cli_command *c)
{
    const me_cli_flag *f = NULL;
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (me_cli_takes(c, f)) {
            me_str_printf(text, " %s", f->name);
        }
    }
    me_str_append(text, me_cli_takes_launch(c) ? " --" : "");
}

static void append_commands(me_str *text)
{
    const me_cli_command *c = NULL;
    me_str_append(text, "    local flags='' operands='' formats=''\n"
                        "    case $command in\n");
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        me_str_printf(text, "    %s)\n        flags=\"", c->name);
        append_flags(text, c);
        me_str_append(text, "\"\n        formats=\"");
        me_cli_append_words(text, c->formats);
        me_str_append(text, "\"\n");
        if (c->operand != NULL) {
            me_str_append(text, "        operands=\"");
            me_cli_append_words(text, c->operand);
            if (strcmp(c->name, "schedule") == 0) {
                me_cli_append_schedules(text);
            }
            me_str_append(text, "\"\n");
        }
        me_str_append(text, "        ;;\n");
    }
    me_str_append(text, "    esac\n");
}

void me_cli_bash(me_str *text)
{
    const me_cli_command *c = NULL;
    me_str_append(text,
                  "# SPDX-License-Identifier: BSD-3-Clause\n"
                  "# shellcheck shell=bash\n"
                  "# bash's completions for memest, made from its tables of "
                  "flags. Where no word\n"
                  "# fits bash completes names of files.\n"
                  "_memest_names() # of what `memest list` lists\n"
                  "{\n"
                  "    \"${COMP_WORDS[0]/#\\~/$HOME}\" list \"$1\" 2> "
                  "/dev/null |\n"
                  "        sed -n '2,$s/^  \\([^ ]*\\) .*/\\1/p'\n"
                  "}\n"
                  "_memest()\n"
                  "{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} i\n"
                  "    local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                  "    local command=estimate commands=''\n"
                  "    COMPREPLY=()\n"
                  "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "        [[ ${COMP_WORDS[i]} != -- ]] || return 0\n"
                  "    done\n"
                  "    if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; "
                  "then\n"
                  "        command=${COMP_WORDS[1]}\n"
                  "    elif ((COMP_CWORD == 1)); then\n"
                  "        commands=\"");
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        me_str_printf(text, " %s", c->name);
    }
    me_str_append(text, "\"\n    fi\n");
    append_commands(text);
    append_cases(text);
    me_str_append(text, "    if [[ $words == none ]]; then\n"
                        "        words=\"$commands $operands\"\n"
                        "        [[ $word != -* ]] || words=$flags\n"
                        "    fi\n"
                        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
                        "\"$word\")\n"
                        "    if ((${#COMPREPLY[@]} == 1)) && "
                        "[[ ${COMPREPLY[0]} == *= ]]; then\n"
                        "        compopt -o nospace 2> /dev/null || true\n"
                        "    fi\n"
                        "}\n"
                        "complete -o default -F _memest memest\n");
}
