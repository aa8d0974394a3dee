/**
 * @file
 * From the ids of a recording to what is known of them: only ids that are in
 * use are held, so that a recording of any length takes bounded memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_ID_MAP_H
#define MEMEST_ALLOC_ID_MAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is known of an id. */
typedef struct me_id_value {
    uint64_t bytes;  /**< that were asked for */
    uint32_t block;  /**< of the pool */
    uint32_t epoch;  /**< of its free, once requested */
    bool is_pending; /**< its free has been requested */
} me_id_value;

/** One place of the table. */
typedef struct me_id_entry {
    uint64_t low;  /**< the id itself up to 15 bytes, else its hash */
    uint64_t high; /**< its length is in the top byte; 0: nobody is here */
    char *text;    /**< an id of 16 bytes or more; NULL for shorter ones */
    me_id_value value;
} me_id_entry;

/** The map; all zero is an empty one. */
typedef struct me_id_map {
    me_id_entry *entries;
    size_t capacity; /**< power of two, or 0 */
    size_t n_used;
} me_id_map;

/** Give back the map's memory; it is empty again. Local. */
void me_id_map_fini(me_id_map *map);

/**
 * The value of an id. Local.
 *
 * @return borrowed until the next change of the map; NULL: not there
 */
me_id_value *me_id_map_find(const me_id_map *map, const char *id,
                            size_t length);

/**
 * Find an id, adding it if it is not there. Local.
 *
 * @param is_new_out  it was not there; its value is all zero
 * @param value_out   borrowed until the next change of the map
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_id_map_add(me_id_map *map, const char *id, size_t length,
                        bool *is_new_out,
                        me_id_value **value_out) ME_MUST_CHECK;

/** Forget an id; @p value is what me_id_map_find() gave for it. Local. */
void me_id_map_remove(me_id_map *map, me_id_value *value);

#endif /* MEMEST_ALLOC_ID_MAP_H */
