/**
 * @file
 * JSON read one token at a time, in memory that does not depend on the text:
 * for files that are too large to be held, such as PyTorch's memory snapshots.
 * What is held whole is read with jansson. The grammar is RFC 8259's; that
 * strings are UTF-8 is not checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_JSON_READER_H
#define MEMEST_BASE_JSON_READER_H

#include "base/progress.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum me_json_kind {
    ME_JSON_END, /**< of the text */
    ME_JSON_OBJECT,
    ME_JSON_OBJECT_END,
    ME_JSON_ARRAY,
    ME_JSON_ARRAY_END,
    ME_JSON_KEY, /**< its value follows */
    ME_JSON_STRING,
    ME_JSON_NUMBER,
    ME_JSON_TRUE,
    ME_JSON_FALSE,
    ME_JSON_NULL
} me_json_kind;

/** One token; the text is borrowed until the next one is read. */
typedef struct me_json_token {
    me_json_kind kind;
    const char *text; /**< of a key, string (without escapes; what is escaped
                         beyond ASCII is U+FFFD) or number; ends with a NUL */
    bool is_cut;      /**< a string that is longer than what is kept */
} me_json_token;

typedef struct me_json_reader me_json_reader;

/**
 * Begin to read. Local.
 *
 * @param head         bytes that have been read of the file already; borrowed
 * @param head_length  of them
 * @param file         open for reading, stays the caller's; a pipe will do
 * @param name         what errors call it; borrowed
 * @return to be destroyed by the caller; NULL without memory
 */
me_json_reader *me_json_reader_create(const char *head, size_t head_length,
                                      FILE *file, const char *name);

/** Show how far it is. Local.
 *
 *  @param part  of its file's bytes; borrowed; NULL: nobody looks */
void me_json_reader_watch(me_json_reader *reader, me_progress_part *part);

/** Give the reader back, not the file; NULL is allowed. Local. */
void me_json_reader_destroy(me_json_reader *reader);

/** What errors call the text. Local. */
const char *me_json_reader_name(const me_json_reader *reader);

/**
 * The next token, ME_JSON_END after the last. Local.
 *
 * @return ME_OK; ME_ERR_SYNTAX with the line; ME_ERR_IO
 */
me_status me_json_next(me_json_reader *reader, me_diag *diag,
                       me_json_token *token_out) ME_MUST_CHECK;

/** Read over what is left of the value that @p token begins or is. Local.
 *
 * @return as me_json_next() */
me_status me_json_skip(me_json_reader *reader, me_diag *diag,
                       const me_json_token *token) ME_MUST_CHECK;

/** The number of a token that is a whole number up to INT64_MAX. Local.
 *
 * @return false if it is none */
bool me_json_whole_number(const me_json_token *token, uint64_t *number_out);

#endif /* MEMEST_BASE_JSON_READER_H */
