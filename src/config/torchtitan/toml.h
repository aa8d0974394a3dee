/**
 * @file
 * TOML 1.0 as configuration files of training programs use it: tables, whether
 * they have a head, stand in a dotted key or in braces, and keys with a text, a
 * whole number, a decimal, true or false, or a list of those. What torchtitan has
 * no use for (dates, tables in lists, names of other bytes) is refused by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCHTITAN_TOML_H
#define MEMEST_CONFIG_TORCHTITAN_TOML_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum me_toml_type {
    ME_TOML_TEXT,
    ME_TOML_WHOLE,
    ME_TOML_DECIMAL,
    ME_TOML_BOOL,
    ME_TOML_LIST
} me_toml_type;

/** A key of a table. All texts are the arena's. */
typedef struct me_toml_value {
    const char *table; /**< all its parts, "quantize.linear.float8"; "": none */
    const char *key;
    me_toml_type type;
    const char *text; /**< the value: of texts what is in quotes, of numbers
                           without underscores, of lists commas between */
    int line;
} me_toml_value;

/** How a file names a table, which says what else may stand in it. */
typedef enum me_toml_table_kind {
    ME_TOML_TABLE_WITHIN, /**< `a` of `[a.b]`: may get a head of its own */
    ME_TOML_TABLE_HEAD,   /**< `[a]` */
    ME_TOML_TABLE_DOTTED, /**< `a` of `a.b = 1` */
    ME_TOML_TABLE_INLINE  /**< `a = {…}` */
} me_toml_table_kind;

/** A table, which may have no key. */
typedef struct me_toml_table {
    const char *name; /**< all its parts, "quantize.linear"; the arena's */
    me_toml_table_kind kind;
    int section; /**< the head that it stands behind; 0: before any */
    int line;
} me_toml_table;

/** A file's keys and tables in its order. */
typedef struct me_toml {
    me_toml_value *values;
    uint32_t count;
    me_toml_table *tables;
    uint32_t n_tables;
} me_toml;

/**
 * Read a file. Local.
 *
 * @param where     its name for messages
 * @param text      bytes, end with a NUL
 * @param length    their number without it
 * @param toml_out  lives in the arena
 * @return ME_OK; ME_ERR_SYNTAX with file and line; ME_ERR_NOMEM
 */
me_status me_toml_read(me_arena *arena, const char *where, const char *text,
                       size_t length, me_diag *diag,
                       me_toml *toml_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCHTITAN_TOML_H */
