/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"
#include "app/cli_pages.h"

#include <string.h>

/** A word and what it is, for _describe, between single quotes. */
static void append_item(me_str *text, const char *name, const char *help)
{
    me_str_printf(text, "\n            '%s:", name);
    for (const char *at = help; *at != '\0'; at++) {
        if (*at == '\'') {
            me_str_append(text, "'\\''");
        } else {
            me_str_append_n(text, at, 1);
        }
    }
    me_str_append(text, "'");
}

/** What can follow a flag; where no word is known, files. */
static void append_values(me_str *text, const me_cli_flag *f)
{
    me_str_printf(text, "        %s%s%s) ",
                  f->short_name == NULL ? "" : f->short_name,
                  f->short_name == NULL ? "" : "|", f->name);
    if (me_cli_takes_option(f)) {
        me_str_append(text, "compadd -S '' -- $options");
        me_cli_append_axes(text, f);
        me_str_append(text, me_cli_takes_file(f->value)
                                ? "; _files; return ;;\n"
                                : "; return ;;\n");
        return;
    }
    if (f->kind == FLAG_FORMAT) {
        me_str_append(text, "compadd -- $formats; return ;;\n");
        return;
    }
    me_str words = {0};
    if (f->kind == FLAG_SCHEDULE) {
        me_cli_append_schedules(&words);
    } else {
        me_cli_append_words(&words, f->value);
    }
    if (me_cli_listed(f) != NULL) {
        me_str_printf(text, "compadd -- ${(f)\"$(_memest_names %s)\"}; ",
                      me_cli_listed(f));
    }
    if (words.length > 0) {
        me_str_printf(text, "compadd --%s; ", me_str_text(&words));
    }
    me_str_append(text, me_cli_takes_file(f->value) ? "_files; return ;;\n"
                                                    : "return ;;\n");
    me_str_fini_piece(&words, text);
}

static void append_commands(me_str *text)
{
    const me_cli_command *c = NULL;
    const me_cli_flag *f = NULL;
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        me_str_printf(text, "        %s)\n            flags=(", c->name);
        for (int j = 0; (f = me_cli_flag_at(j)) != NULL; j++) {
            if (me_cli_takes(c, f)) {
                append_item(text, f->name, f->help);
            }
        }
        me_str_append(text, ")\n            formats=(");
        me_cli_append_words(text, c->formats);
        me_str_append(text, " )\n");
        if (c->operand != NULL) {
            me_str_append(text, "            operands=(");
            me_cli_append_words(text, c->operand);
            if (strcmp(c->name, "schedule") == 0) {
                me_cli_append_schedules(text);
            }
            me_str_append(text, " )\n");
        }
        me_str_append(text, "            ;;\n");
    }
}

void me_cli_zsh(me_str *text)
{
    const me_cli_command *c = NULL;
    const me_cli_flag *f = NULL;
    me_str_append(text,
                  "#compdef memest\n"
                  "# SPDX-License-Identifier: BSD-3-Clause\n"
                  "# zsh's completions for memest, made from its tables of "
                  "flags.\n"
                  "_memest_names() { # of what `memest list` lists\n"
                  "    ${(Q)~words[1]} list $1 2> /dev/null |\n"
                  "        sed -n '2,$s/^  \\([^ ]*\\) .*/\\1/p'\n"
                  "}\n"
                  "_memest() {\n"
                  "    local command=estimate i\n"
                  "    local -a commands flags operands options formats\n"
                  "    for ((i = 2; i < CURRENT; i++)); do\n"
                  "        [[ $words[i] == -- ]] && { _files; return }\n"
                  "    done\n"
                  "    commands=(");
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        append_item(text, c->name, c->help);
    }
    me_str_append(text, ")\n    options=(");
    me_cli_append_options(text, "\n        ");
    me_str_append(text, ")\n"
                        "    [[ $words[2] != -* ]] && ((CURRENT > 2)) && "
                        "command=$words[2]\n"
                        "    case $command in\n");
    append_commands(text);
    me_str_append(text, "    esac\n    case $words[CURRENT-1] in\n");
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (f->value != NULL) {
            append_values(text, f);
        }
    }
    me_str_append(text,
                  "    esac\n"
                  "    if [[ $PREFIX == -* ]]; then\n"
                  "        _describe -o flag flags\n"
                  "    else\n"
                  "        ((CURRENT == 2)) && _describe command commands\n"
                  "        (($#operands > 0)) && compadd -- $operands\n"
                  "        _files\n"
                  "    fi\n"
                  "}\n"
                  "_memest \"$@\"\n");
}
