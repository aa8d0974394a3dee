/**
 * @file
 * What is common to readers of large JSON: an object of which some fields count
 * and others are read over, and a list of which each item is read in its turn.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_JSON_OBJECT_H
#define MEMEST_BASE_JSON_OBJECT_H

#include "base/json_reader.h"

enum {
    ME_JSON_WORD_BYTES = 32 /**< of a word that is kept, with its NUL */
};

/** Reads the value that @p token begins or is, to its end. */
typedef me_status me_json_read(void *self, me_diag *diag,
                               const me_json_token *token);

/** A field that counts, and what was read of it. */
typedef struct me_json_field {
    const char *key;
    me_json_read *read;            /**< NULL: it is a word or a number */
    char word[ME_JSON_WORD_BYTES]; /**< empty if it is none, or a longer one */
    uint64_t number;
    bool is_number; /**< a whole one, see me_json_whole_number() */
    bool is_there;
} me_json_field;

/**
 * Read an object whose first token was read. Local.
 *
 * @param fields  those that count; all zero but key and read
 * @param self    for their read()
 * @return ME_OK; ME_ERR_SYNTAX, also where one of @p fields stands twice;
 *         ME_ERR_IO; what read() returns
 */
me_status me_json_read_object(me_json_reader *reader, me_diag *diag,
                              me_json_field *fields, size_t n_fields,
                              void *self) ME_MUST_CHECK;

/** Read a list whose first token was read, each item with @p read. Local.
 *
 * @return ME_OK, ME_ERR_SYNTAX, ME_ERR_IO; what read() returns */
me_status me_json_read_list(me_json_reader *reader, me_diag *diag,
                            me_json_read *read, void *self) ME_MUST_CHECK;

#endif /* MEMEST_BASE_JSON_OBJECT_H */
