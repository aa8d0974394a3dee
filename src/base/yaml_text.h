/**
 * @file
 * YAML: the one place where libyaml parses. A file becomes the list of its
 * leaves, each with the path of keys that leads to it; what refers to itself, is
 * too deep or too much is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_YAML_TEXT_H
#define MEMEST_BASE_YAML_TEXT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    ME_YAML_DEPTH_MAX = 32,
    ME_YAML_LEAVES_MAX = 20000, /**< aliases followed */
    ME_YAML_PATH = 256          /**< bytes of a path, its end included */
};

/** A scalar, or a list of scalars. */
typedef struct me_yaml_leaf {
    const char *
        path; /**< `?` in place of what cannot be printed; keys with dots between them; numbers in lists */
    const char *key;           /**< its last part */
    const char *const *values; /**< one, or those of a list */
    int n_values;
    bool is_list;
    bool is_plain;     /**< not quoted: `true` and `null` mean what they say */
    const char *where; /**< the file's name, borrowed */
    int line;
} me_yaml_leaf;

typedef struct me_yaml {
    me_yaml_leaf *leaves; /**< in the order of the file; of a key that a file
                               has twice, and of `<<:`, the later is behind */
    size_t count;
} me_yaml;

/**
 * Read the one document of a text, its whole numbers as PyYAML has them. Local.
 *
 * @param where     file name for messages
 * @param length    of @p text, which ends with a 0 behind it
 * @param arena     holds all of the result
 * @param yaml_out  set on success
 * @return ME_OK; ME_ERR_SYNTAX with the line of what is no YAML (or none to
 *         PyYAML: tabs, two documents), is too deep or too much; ME_ERR_NOMEM
 */
me_status me_yaml_parse(const char *where, const char *text, size_t length,
                        me_arena *arena, me_diag *diag,
                        me_yaml *yaml_out) ME_MUST_CHECK;

/** Is the leaf `null`, `~` or nothing? */
bool me_yaml_is_null(const me_yaml_leaf *leaf);

/** Is the leaf one of YAML 1.1's words for true or false? */
bool me_yaml_bool(const me_yaml_leaf *leaf, bool *value_out);

#endif /* MEMEST_BASE_YAML_TEXT_H */
