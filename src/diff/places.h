/**
 * @file
 * Where in a list an entry stands, by a hash of what it is known by: of as many
 * ranks and parts as there are none is looked for one by one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DIFF_PLACES_H
#define MEMEST_DIFF_PLACES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** All zero is of an empty list. Owned by the list. */
typedef struct me_places {
    uint32_t *slots;    /**< a place and one; 0: free */
    uint64_t *hashes;   /**< of what stands there */
    uint32_t n_slots;   /**< a power of two, or 0 */
    uint32_t n_entries; /**< of the list, in their order */
} me_places;

/** Is the entry at @p place of @p list the one that is looked for? */
typedef bool me_places_same(const void *list, uint32_t place, const void *key);

enum {
    ME_PLACE_NONE = -1
};

/** The place of an entry in its list; ME_PLACE_NONE. Local. */
int64_t me_places_find(const me_places *places, uint64_t hash,
                       me_places_same *is_same, const void *list,
                       const void *key);

/** The list's next entry has that hash. @return ME_OK or ME_ERR_NOMEM, without a
 *  change. Local. */
me_status me_places_add(me_places *places, uint64_t hash) ME_MUST_CHECK;

void me_places_fini(me_places *places);

/** A hash of a number, and of a text. */
uint64_t me_place_of_number(uint64_t number);
uint64_t me_place_of_text(const char *text);

#endif /* MEMEST_DIFF_PLACES_H */
