/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/digest_map.h"

#include "base/alloc.h"

#include <string.h>

me_status me_digest_map_init(me_digest_map *map, size_t most)
{
    size_t n = 16;
    while (n < most * 2) {
        n *= 2;
    }
    map->n_buckets = n;
    map->keys = me_alloc(n, sizeof *map->keys, "digest_map.keys");
    map->values = me_alloc(n, sizeof *map->values, "digest_map.values");
    if (map->keys == NULL || map->values == NULL) {
        me_digest_map_fini(map);
        return ME_ERR_NOMEM;
    }
    return ME_OK;
}

void me_digest_map_fini(me_digest_map *map)
{
    me_free(map->keys);
    me_free(map->values);
    *map = (me_digest_map){0};
}

void me_digest_map_clear(me_digest_map *map)
{
    memset(map->values, 0, map->n_buckets * sizeof *map->values);
}

int me_digest_map_get(me_digest_map *map, me_digest key, int value)
{
    const size_t mask = map->n_buckets - 1;
    size_t at = (size_t)(key.a ^ key.b) & mask;
    while (map->values[at] != 0 && !me_digest_is_equal(map->keys[at], key)) {
        at = (at + 1) & mask;
    }
    if (map->values[at] == 0) {
        map->keys[at] = key;
        map->values[at] = value + 1;
    }
    return map->values[at] - 1;
}
