/**
 * @file
 * What an installation has of the command line beside the program: the manual
 * page memest.1 and completions of shells, all from the tables of flags, commands
 * and options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_CLI_PAGES_H
#define MEMEST_APP_CLI_PAGES_H

#include "app/cli_flag.h"
#include "base/str.h"

/** The manual page, in man's macros and ASCII. */
void me_cli_man(me_str *page);

/** The function that completes a command line, for bash. */
void me_cli_bash(me_str *text);

/** The same for zsh and fish. */
void me_cli_zsh(me_str *text);
void me_cli_fish(me_str *text);

/** The words of a placeholder, "text|json", that can be typed as they are: a
 *  space before each. */
void me_cli_append_words(me_str *text, const char *value);

/** What `memest list` has for the value of a flag, such as "models": a shell asks
 *  the program for it, since users add their own; NULL: nothing. */
const char *me_cli_listed(const me_cli_flag *f);

/** Can a placeholder's place have a file? */
bool me_cli_takes_file(const char *value);

/** The names of all schedules, likewise. */
void me_cli_append_schedules(me_str *text);

/** The names of axes that set several options, behind --space: a space before and
 *  a "=" behind each; of another flag none. */
void me_cli_append_axes(me_str *text, const me_cli_flag *f);

/** The names of all options, a "=" behind each, three after each @p line_begin. */
void me_cli_append_options(me_str *text, const char *line_begin);

#endif /* MEMEST_APP_CLI_PAGES_H */
