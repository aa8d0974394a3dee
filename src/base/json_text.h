/**
 * @file
 * JSON that is held whole, read with jansson: the one place where it parses
 * what a user wrote. Files that are too large for that are read with
 * base/json_reader.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_JSON_TEXT_H
#define MEMEST_BASE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/**
 * Parse; a key that stands twice in an object is refused. Local.
 *
 * @param where     file name for messages
 * @param text      bytes, need not end with a NUL
 * @param length    their number
 * @param root_out  one reference of the caller's
 * @return ME_OK; ME_ERR_SYNTAX with line and column; ME_ERR_NOMEM
 */
me_status me_json_parse(const char *where, const char *text, size_t length,
                        me_diag *diag, json_t **root_out) ME_MUST_CHECK;

#endif /* MEMEST_BASE_JSON_TEXT_H */
