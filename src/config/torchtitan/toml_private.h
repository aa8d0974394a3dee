/**
 * @file
 * The walk over a TOML file that its statements (toml.c) and its values
 * (toml_value.c) share. It leaves out what the values mean.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCHTITAN_TOML_PRIVATE_H
#define MEMEST_CONFIG_TORCHTITAN_TOML_PRIVATE_H

#include "base/str.h"
#include "config/torchtitan/toml.h"

#include <stdbool.h>

/** A walk over the text. All that it points to outlives it. */
typedef struct me_toml_scanner {
    me_arena *arena;
    const char *where; /**< the file's name for messages */
    const char *at;
    int line;
    const char
        *table;  /**< the one that keys stand in, as me_toml_value has it */
    int section; /**< counts heads of tables and inline tables; 0: before
                            any */
    int n_sections;
    int depth; /**< inline tables around @ref at */
    me_toml *toml;
    me_diag *diag;
} me_toml_scanner;

/** ME_ERR_SYNTAX at the walk's line. Local. */
me_status me_toml_fail(const me_toml_scanner *s, const char *what);

/** ME_ERR_NOMEM. Local. */
me_status me_toml_fail_memory(const me_toml_scanner *s);

/** Go past blanks and a comment, not past the line's end. Local. */
void me_toml_skip_blank(me_toml_scanner *s);

/** Go past blanks, comments and ends of lines. Local. */
void me_toml_skip_lines(me_toml_scanner *s);

/** May @p c stand in a key without quotes? Local. */
bool me_toml_is_bare(char c);

/**
 * A text in double or single quotes, on one line or, in three of either, on
 * several. Local.
 *
 * @param s     at the first quote; goes past the last
 * @param text  what is in quotes is put behind it; keeps its failure
 * @return ME_OK; ME_ERR_SYNTAX
 */
me_status me_toml_read_quoted(me_toml_scanner *s, me_str *text) ME_MUST_CHECK;

/**
 * A value that is no inline table. Local.
 *
 * @param s         at its first byte; goes past its last
 * @param type_out  of the value
 * @param text      the value as me_toml_value has it is put behind it; keeps its
 *                  failure
 * @return ME_OK; ME_ERR_SYNTAX
 */
me_status me_toml_read_value(me_toml_scanner *s, me_toml_type *type_out,
                             me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCHTITAN_TOML_PRIVATE_H */
