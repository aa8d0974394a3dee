/**
 * @file
 * From digests to small numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_DIGEST_MAP_H
#define MEMEST_COLLECTIVES_DIGEST_MAP_H

#include "base/status.h"
#include "collectives/digest.h"

#include <stddef.h>

/** An open hash table of fixed size. */
typedef struct me_digest_map {
    me_digest *keys;
    int *values; /**< value + 1; 0: empty */
    size_t n_buckets;
} me_digest_map;

/** Room for @p most keys. @return ME_OK, ME_ERR_NOMEM. Local. */
me_status me_digest_map_init(me_digest_map *map, size_t most);

/** Give back the table; one that is all zero is allowed. Local. */
void me_digest_map_fini(me_digest_map *map);

/** Forget all keys. Local. */
void me_digest_map_clear(me_digest_map *map);

/** The value of @p key, which is @p value if it was not there. Local. */
int me_digest_map_get(me_digest_map *map, me_digest key, int value);

#endif /* MEMEST_COLLECTIVES_DIGEST_MAP_H */
