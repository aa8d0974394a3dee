/**
 * @file
 * Pickles of plain data, as `torch.cuda.memory._dump_snapshot()` writes them:
 * dictionaries, lists, tuples, texts, numbers. They are made into JSON, which
 * base/json_reader.h reads. Nothing of Python's is ever looked up or called:
 * a pickle that asks for it is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PICKLE_H
#define MEMEST_BASE_PICKLE_H

#include "base/progress.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Does a pickle begin so? Its first byte, which no text has. */
static inline bool me_pickle_begins(char first)
{
    return first == '\x80';
}

/**
 * Refuse a pickle of a dictionary or a list in protocol 0 or 1, which begin with no
 * number of theirs; anything else is taken. Local.
 *
 * @param head  the file's first bytes
 * @return ME_OK; ME_ERR_SYNTAX that says how to write one that is read
 */
me_status me_pickle_refuse_old(const char *head, size_t length,
                               const char *name, me_diag *diag) ME_MUST_CHECK;

/** Of the time that a pickle takes to be read, in tenths: it, and its JSON. */
enum {
    ME_PICKLE_TENTHS = 7,
    ME_PICKLE_JSON_TENTHS = 3
};

/** Classes of dictionaries by which lists are cut; others lie in between. */
enum {
    ME_PICKLE_LEFT_OUT = 0,
    ME_PICKLE_CLASSES = 3,
    ME_PICKLE_NO_CLASS = ME_PICKLE_CLASSES /* the text does not say it */
};

/** What is wanted of a pickle. All borrowed. */
typedef struct me_pickle_wanted {
    const char *const *keys; /**< of dictionaries: others are left out */
    size_t n_keys;
    /** The class of a dictionary with such a text, as the frames of a stack have:
     *  of several the lowest. Lists keep the first of each class, and none of
     *  ME_PICKLE_LEFT_OUT; NULL: lists are kept whole. */
    uint8_t (*class_of)(const char *key, const char *text);
    uint32_t cut_items; /**< of each class that a list keeps */
    me_progress_part
        *part; /**< of its bytes twice, since it is read twice; NULL:
                                 nobody looks */
} me_pickle_wanted;

/**
 * Make JSON of a pickle. Host memory depends on what is shared within the
 * pickle and not on its length. Local.
 *
 * @param pickle    at its first byte, where a seek can come back to; stays the
 *                  caller's
 * @param name      what errors call it
 * @param wanted    borrowed during the call
 * @param json_out  a temporary file at its beginning; the caller closes it
 * @return ME_OK; ME_ERR_SYNTAX for what is refused or no pickle; ME_ERR_IO,
 *         ME_ERR_NOMEM
 */
me_status me_pickle_to_json(FILE *pickle, const char *name,
                            const me_pickle_wanted *wanted, me_diag *diag,
                            FILE **json_out) ME_MUST_CHECK;

#endif /* MEMEST_BASE_PICKLE_H */
