/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"
#include "base/text_wrap.h"

#include <string.h>

enum {
    HELP_AT = 29,   /* column */
    COMMAND_AT = 16 /* likewise */
};

/** A flag of a command. */
static void append_flag(const me_cli_command *c, const me_cli_flag *f,
                        me_str *text)
{
    me_str left = {0};
    const char *value = me_cli_value(c, f);
    me_str_printf(&left, "  %s%s%s%s%s",
                  f->short_name == NULL ? "" : f->short_name,
                  f->short_name == NULL ? "" : ", ", f->name,
                  value == NULL ? "" : " ", value == NULL ? "" : value);
    me_text_entry(me_str_text(&left), HELP_AT, me_cli_flag_help(c, f), text);
    me_str_fini_piece(&left, text);
}

static const me_cli_command *named(const char *name)
{
    const me_cli_command *c = me_cli_command_at(0);
    for (int i = 0; c != NULL && strcmp(c->name, name) != 0; i++) {
        c = me_cli_command_at(i + 1);
    }
    return c;
}

/** What a command reads, and the flags that it takes. */
static void append_command(const me_cli_command *c, me_str *text)
{
    const bool is_default = c == me_cli_command_at(0);
    me_str_printf(text, "  memest %s%s%s%s%s [FLAG…]%s\n",
                  is_default ? "[" : "", c->name, is_default ? "]" : "",
                  c->operand == NULL ? "" : " ",
                  c->operand == NULL ? "" : c->operand,
                  me_cli_takes_launch(c) ? " [-- LAUNCH COMMAND…]" : "");
    if (me_cli_takes_launch(c)) {
        me_str_printf(text, "  memest %s SCRIPT [FLAG…] [-- ITS ARGUMENTS…]\n",
                      c->name);
    }
    me_str_append(text, "\n");
    me_str_printf(text, "%s\n\nFlags\n", c->help);
    for (int i = 0; me_cli_flag_at(i) != NULL; i++) {
        if (me_cli_takes(c, me_cli_flag_at(i))) {
            append_flag(c, me_cli_flag_at(i), text);
        }
    }
}

static void append_command_line(const me_cli_command *c, me_str *text)
{
    me_str name = {0};
    me_str what = {0};
    me_str_printf(&name, "  %s", c->name);
    me_str_printf(&what, "%s%s%s", c->operand == NULL ? "" : c->operand,
                  c->operand == NULL ? "" : "  ", c->help);
    me_text_entry(me_str_text(&name), COMMAND_AT, me_str_text(&what), text);
    me_str_fini_piece(&name, text);
    me_str_fini_piece(&what, text);
}

static void append_all(me_str *text)
{
    me_str_append(
        text,
        "memest predicts the memory of every rank of a distributed training "
        "job.\n\n"
        "  memest [COMMAND] --model FILE|NAME [FLAG…] [-- LAUNCH COMMAND…]\n"
        "  mpirun -n 8 memest --model configs/gpt.cfg\n"
        "  memest --world-size 8 -- pretrain_gpt.py --num-layers 32 …\n"
        "  memest check train.sh [FLAG…] [-- ITS ARGUMENTS…]\n\n"
        "Commands\n");
    for (int i = 0; me_cli_command_at(i) != NULL; i++) {
        const me_cli_command *c = me_cli_command_at(i);
        append_command_line(c, text);
    }
    me_str_append(text, "\nFlags\n");
    for (int i = 0; me_cli_flag_at(i) != NULL; i++) {
        append_flag(me_cli_command_at(0), me_cli_flag_at(i), text);
    }
}

void me_cli_help(const me_cli *cli, me_str *text)
{
    if (cli->has_command) {
        append_command(named(cli->command), text);
    } else {
        append_all(text);
        me_str_append(text, "\nmemest COMMAND --help, or memest help COMMAND, "
                            "has the flags and formats of one command.\n");
    }
    me_str_append(text,
                  "\nExit codes: 0 report written or job fits, 1 internal or "
                  "I/O, 2 usage or configuration, 3 does not fit or too close "
                  "to call, 4 too much is not modelled to say.\n");
}
