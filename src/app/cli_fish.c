/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"
#include "app/cli_pages.h"
#include "config/options.h"

#include <string.h>

/** A text between single quotes, as fish reads it. */
static void append_quoted(me_str *text, const char *words)
{
    me_str_append(text, "'");
    for (const char *at = words; *at != '\0'; at++) {
        if (*at == '\'' || *at == '\\') {
            me_str_append(text, "\\");
        }
        me_str_append_n(text, at, 1);
    }
    me_str_append(text, "'");
}

/** Where a flag may stand. The first command is the one that need not be
 *  named: where it has the flag, those are listed that have not. */
static void append_condition(me_str *text, const me_cli_flag *f)
{
    const me_cli_command *c = me_cli_command_at(0);
    const bool is_default = me_cli_takes(c, f);
    me_str names = {0};
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        if (me_cli_takes(c, f) != is_default) {
            me_str_printf(&names, " %s", c->name);
        }
    }
    if (names.length > 0) {
        me_str_printf(text, " -n '%s__fish_seen_subcommand_from%s'",
                      is_default ? "not " : "", me_str_text(&names));
    }
    me_str_fini_piece(&names, text);
}

static void append_values(me_str *text, const me_cli_flag *f)
{
    me_str words = {0};
    if (me_cli_listed(f) != NULL) {
        me_str_printf(&words, "(__memest_names %s)", me_cli_listed(f));
    }
    if (me_cli_takes_option(f)) {
        me_str_append(&words, "(__memest_options)");
        me_cli_append_axes(&words, f);
    } else if (f->kind == FLAG_SCHEDULE) {
        me_cli_append_schedules(&words);
    } else {
        me_cli_append_words(&words, f->value);
    }
    // Where there are no files, none are offered.
    me_str_append(text, me_cli_takes_file(f->value) ? " -r" : " -x");
    if (words.length > 0) {
        me_str_append(text, " -a ");
        append_quoted(text, me_str_text(&words));
    }
    me_str_fini_piece(&words, text);
}

/** The formats of each command; the first one need not be named. */
static void append_formats(me_str *text, const me_cli_flag *f)
{
    const me_cli_command *c = NULL;
    me_str others = {0};
    for (int i = 1; (c = me_cli_command_at(i)) != NULL; i++) {
        me_str_printf(&others, "%s%s", i == 1 ? "" : " ", c->name);
    }
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        me_str words = {0};
        if (!me_cli_takes(c, f)) {
            continue;
        }
        me_cli_append_words(&words, c->formats);
        me_str_append(text, "complete -c memest -n ");
        me_str_printf(text, "'%s__fish_seen_subcommand_from %s'",
                      i == 0 ? "not " : "",
                      i == 0 ? me_str_text(&others) : c->name);
        me_str_printf(text, " -l %s -x -a ", f->name + 2);
        append_quoted(text, me_str_text(&words));
        me_str_append(text, " -d ");
        append_quoted(text, me_cli_flag_help(c, f));
        me_str_append(text, "\n");
        me_str_fini_piece(&words, text);
    }
    me_str_fini_piece(&others, text);
}

static void append_flag(me_str *text, const me_cli_flag *f)
{
    if (f->kind == FLAG_FORMAT) {
        append_formats(text, f);
        return;
    }

    me_str_append(text, "complete -c memest");
    append_condition(text, f);
    if (f->short_name != NULL) {
        me_str_printf(text, " -s %s", f->short_name + 1);
    }
    me_str_printf(text, " -l %s", f->name + 2);
    if (f->value != NULL) {
        append_values(text, f);
    }
    me_str_append(text, " -d ");
    append_quoted(text, f->help);
    me_str_append(text, "\n");
}

static void append_command(me_str *text, const me_cli_command *c)
{
    me_str_printf(text, "complete -c memest -n __fish_use_subcommand -a %s -d ",
                  c->name);
    append_quoted(text, c->help);
    me_str_append(text, "\n");
    me_str words = {0};
    if (c->operand != NULL) {
        me_cli_append_words(&words, c->operand);
    }
    if (strcmp(c->name, "schedule") == 0) {
        me_cli_append_schedules(&words);
    }
    if (words.length > 0) {
        me_str_printf(text,
                      "complete -c memest -n '__fish_seen_subcommand_from "
                      "%s'%s -a ",
                      c->name, me_cli_takes_file(c->operand) ? "" : " -f");
        append_quoted(text, me_str_text(&words));
        me_str_append(text, "\n");
    }
    me_str_fini_piece(&words, text);
}

void me_cli_fish(me_str *text)
{
    const me_cli_command *c = NULL;
    const me_cli_flag *f = NULL;
    size_t count = 0;
    const me_option *options = me_options(&count);
    me_str_append(text,
                  "# SPDX-License-Identifier: BSD-3-Clause\n"
                  "# fish's completions for memest, made from its tables "
                  "of flags.\n"
                  "function __memest_names # of what `memest list` lists\n"
                  "    set -l words (commandline -opc)\n"
                  "    set -l program (string replace -r '^~' $HOME "
                  "$words[1])\n"
                  "    $program list $argv[1] 2>/dev/null |\n"
                  "        sed -n '2,$s/^  \\([^ ]*\\) .*/\\1/p'\n"
                  "end\n"
                  "function __memest_options\n"
                  "    printf '%s=\\n'");
    for (size_t i = 0; i < count; i++) {
        me_str_printf(text, "%s%s", i % 3 == 0 ? " \\\n        " : " ",
                      options[i].name);
    }
    me_str_append(text, "\nend\n");
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        append_command(text, c);
    }
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        append_flag(text, f);
    }
}
