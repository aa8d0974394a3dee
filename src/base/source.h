/**
 * @file
 * Text of a configuration file made safe for libconfig 1.5, which wraps
 * numbers over 32 bits in silence, ends the process when an include is a
 * directory, leaks text where none may stand, and takes time with the square
 * of a text's length and of the names in a group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_SOURCE_H
#define MEMEST_BASE_SOURCE_H

#include "base/status.h"
#include "base/str.h"

#include <stddef.h>

enum {
    ME_INCLUDES_MAX = 32
};

/** An `@include "path"` line outside of all groups. */
typedef struct me_include {
    char *path; /**< as written; owned by the source */
    int line;
} me_include;

/** A file's text with the same lines: numbers widened, includes taken out. */
typedef struct me_source {
    me_str text;
    me_include includes[ME_INCLUDES_MAX];
    size_t n_includes;
} me_source;

/**
 * Make a source from raw text. Local.
 *
 * @param where       file name for messages
 * @param raw         bytes, need not end with a NUL
 * @param length      their number
 * @param source_out  to be given back with me_source_fini(), also on failure
 * @return ME_OK; ME_ERR_SYNTAX for binary input, numbers over 64 bits,
 *         strings and comments that do not end or are too long, stray bytes,
 *         misplaced includes, groups with thousands of names; ME_ERR_NOMEM
 */
me_status me_source_scan(const char *where, const char *raw, size_t length,
                         me_diag *diag, me_source *source_out) ME_MUST_CHECK;

/** As me_source_scan(), of a text that may have lists and arrays. Local. */
me_status me_source_scan_lists(const char *where, const char *raw,
                               size_t length, me_diag *diag,
                               me_source *source_out) ME_MUST_CHECK;

/** Give back what a source holds. Local. */
void me_source_fini(me_source *source);

#endif /* MEMEST_BASE_SOURCE_H */
