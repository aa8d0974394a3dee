/**
 * @file
 * "Did you mean": the known word nearest to one that is not known.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_NEAREST_H
#define MEMEST_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/** A search under way; made by me_nearest_begin(). */
typedef struct me_nearest {
    const char *word; /**< borrowed: what was written */
    size_t best;      /**< edits of the best one so far */
} me_nearest;

/**
 * Search for @p word; only words within a third of its length are near.
 *
 * @param word  borrowed until the search ends
 */
me_nearest me_nearest_begin(const char *word);

/** Is @p known nearer than all words offered before? */
bool me_nearest_offer(me_nearest *nearest, const char *known);

/**
 * Edits (insert, delete, replace, swap neighbours) from one word to another;
 * words over 95 bytes are infinitely far.
 */
size_t me_edit_distance(const char *a, const char *b);

#endif /* MEMEST_BASE_NEAREST_H */
