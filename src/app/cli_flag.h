/**
 * @file
 * A flag of the command line and where its value goes, a command, and the
 * tables of both; for cli.c and what is made of them: help,
 * manual page, completions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_CLI_FLAG_H
#define MEMEST_APP_CLI_FLAG_H

#include "app/cli.h"

#include <stddef.h>

typedef enum me_cli_flag_kind {
    FLAG_TEXT,
    FLAG_NAME,   /**< text that is not empty: a file, a word */
    FLAG_FORMAT, /**< one of the command's formats */
    FLAG_NUMBER, /**< not negative, 31 bits */
    FLAG_COUNT,  /**< the same, and not 0 */
    FLAG_SWITCH,
    FLAG_SET, /**< text; may be repeated, as those below */
    FLAG_SCHEDULE,
    FLAG_VARIANT,
    FLAG_SPACE
} me_cli_flag_kind;

/** A flag: what it is called, what it takes, where it goes, what it is for. */
typedef struct me_cli_flag {
    const char *name;
    const char *short_name;
    const char *value; /**< placeholder in the help, NULL: none */
    me_cli_flag_kind kind;
    size_t offset;
    const char *help;
} me_cli_flag;

/** A command. Flags of all: --log-level, --log-file, --help, --version. */
typedef struct me_cli_command {
    const char *name;
    const char *operand; /**< what it reads, in brackets if it need not be
                            there; NULL: it takes no word */
    const char *takes;   /**< its flags, a space around each; NULL: every one
                            and a launch command, which a list has as -- */
    const char *formats; /**< of --format, "|" between two */
    const char *help;
} me_cli_command;

/** The tables, in their order; NULL beyond the last. */
const me_cli_flag *me_cli_flag_at(int index);
const me_cli_command *me_cli_command_at(int index);

/** Flags that every command has, a space around each. */
extern const char me_cli_every_command[];

/** Values of --format that are of one rank, a space around each. */
extern const char me_cli_rank_formats[];

/** Whether @p list, with spaces around each name, has @p name. */
bool me_cli_list_has(const char *list, const char *name);

/** Has a command this flag? Has it a launch command after `--`? */
bool me_cli_takes(const me_cli_command *c, const me_cli_flag *f);
bool me_cli_takes_launch(const me_cli_command *c);

/** What follows a flag of the command, and what it is for. */
const char *me_cli_value(const me_cli_command *c, const me_cli_flag *f);
const char *me_cli_flag_help(const me_cli_command *c, const me_cli_flag *f);

/** Whether a flag's value begins with an option's name. */
bool me_cli_takes_option(const me_cli_flag *f);

/** Whether a command has a format of this name. */
bool me_cli_has_format(const me_cli_command *c, const char *name);

/** Store the value of a flag; text is borrowed. @return ME_OK; ME_ERR_CONFIG
 *  with what would be right */
me_status me_cli_store(me_cli *cli, const me_cli_flag *f, const char *value,
                       me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_CLI_FLAG_H */
