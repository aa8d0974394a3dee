/**
 * @file
 * A list or an object while it is made of JSON texts, one behind the other: a
 * short one lies in memory, what a long one began with in a temporary file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PICKLE_TEXT_H
#define MEMEST_BASE_PICKLE_TEXT_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Where long texts go, and how much may still be written. */
typedef struct me_pickle_spool {
    FILE *file;      /**< temporary */
    uint64_t bytes;  /**< in it */
    uint64_t budget; /**< bytes that texts may still grow by, all together */
} me_pickle_spool;

typedef struct me_pickle_text me_pickle_text;

/** An empty one, with one holder. @return NULL without memory */
me_pickle_text *me_pickle_text_create(bool is_object);

/** One more who holds it. */
void me_pickle_text_retain(me_pickle_text *text);

/** One less; the last one gives it back. NULL is allowed. */
void me_pickle_text_release(me_pickle_text *text);

bool me_pickle_text_is_object(const me_pickle_text *text);

/** It is an object of a class by which lists are cut (base/pickle.h), if it is
 *  of no lower one. */
void me_pickle_text_lower_class(me_pickle_text *text, uint8_t class_number);

uint8_t me_pickle_text_class(const me_pickle_text *text);

/** Objects of a class that were appended. @param class_number  below
 *  ME_PICKLE_CLASSES */
uint32_t me_pickle_text_count(const me_pickle_text *text, uint8_t class_number);

/** Nothing is appended to it any more. */
void me_pickle_text_close(me_pickle_text *text);

bool me_pickle_text_is_closed(const me_pickle_text *text);

/** Append a piece of JSON. @return ME_OK; ME_ERR_CAPACITY where the budget is
 *  used up; ME_ERR_NOMEM, ME_ERR_IO */
me_status me_pickle_text_append(me_pickle_text *text, me_pickle_spool *spool,
                                const char *piece, size_t length) ME_MUST_CHECK;

/** Append another one, with its brackets. @return as above */
me_status me_pickle_text_append_text(me_pickle_text *text,
                                     me_pickle_spool *spool,
                                     const me_pickle_text *part) ME_MUST_CHECK;

/** Write it, with its brackets. @return ME_OK, ME_ERR_IO */
me_status me_pickle_text_write(const me_pickle_text *text,
                               me_pickle_spool *spool, FILE *out) ME_MUST_CHECK;

/** Does anything stand in it? */
bool me_pickle_text_is_empty(const me_pickle_text *text);

#endif /* MEMEST_BASE_PICKLE_TEXT_H */
