/* SPDX-License-Identifier: BSD-3-Clause */
/* An open table with linear probing. Removing shifts back what follows, so
 * that no marks of the dead pile up. */
#include "alloc/id_map.h"

#include "base/alloc.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 64,
    INLINE_LENGTH = 15,
    LENGTH_SHIFT = 56
};

#define LONG_MARK (UINT64_C(0xFF) << LENGTH_SHIFT)

/** An id as the table compares it. */
typedef struct key {
    uint64_t low;
    uint64_t high;
    const char *text;
    size_t length;
} key;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return x ^ (x >> 32);
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = length;
    while (length > 0) {
        uint64_t word = 0;
        const size_t n = length < sizeof word ? length : sizeof word;
        memcpy(&word, text, n);
        hash = mix(hash ^ word);
        text += n;
        length -= n;
    }
    return hash;
}

/** Bytes as a number; what order they are in does not matter. */
static uint64_t pack(const char *text, size_t length)
{
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) {
        word = word << 8U | (unsigned char)text[i];
    }
    return word;
}

static key make_key(const char *id, size_t length)
{
    key k = {.text = id, .length = length};
    if (length > INLINE_LENGTH) {
        k.low = hash_text(id, length);
        k.high = LONG_MARK | (length & ~LONG_MARK);
        return k;
    }
    const size_t n_low = length < sizeof k.low ? length : sizeof k.low;
    k.low = pack(id, n_low);
    k.high = pack(id + n_low, length - n_low) | (uint64_t)(length + 1)
                                                    << LENGTH_SHIFT;
    return k;
}

static size_t home(const me_id_map *map, uint64_t low, uint64_t high)
{
    return (size_t)mix(low ^ (high * UINT64_C(0x9E3779B97F4A7C15))) &
           (map->capacity - 1);
}

static bool is_same(const me_id_entry *e, const key *k)
{
    if (e->low != k->low || e->high != k->high) {
        return false;
    }
    return e->text == NULL || memcmp(e->text, k->text, k->length) == 0;
}

void me_id_map_fini(me_id_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        me_free(map->entries[i].text);
    }
    me_free(map->entries);
    *map = (me_id_map){0};
}

me_id_value *me_id_map_find(const me_id_map *map, const char *id, size_t length)
{
    if (map->capacity == 0) {
        return NULL;
    }
    const key k = make_key(id, length);
    for (size_t i = home(map, k.low, k.high); map->entries[i].high != 0;
         i = (i + 1) & (map->capacity - 1)) {
        if (is_same(&map->entries[i], &k)) {
            return &map->entries[i].value;
        }
    }
    return NULL;
}

static void place(me_id_map *map, const me_id_entry *entry)
{
    size_t i = home(map, entry->low, entry->high);
    while (map->entries[i].high != 0) {
        i = (i + 1) & (map->capacity - 1);
    }
    map->entries[i] = *entry;
}

static me_status grow(me_id_map *map)
{
    me_id_map larger = {
        .capacity = map->capacity == 0 ? FIRST_CAPACITY : map->capacity * 2,
        .n_used = map->n_used,
    };
    larger.entries =
        me_alloc(larger.capacity, sizeof *larger.entries, "alloc.ids");
    if (larger.entries == NULL) {
        return ME_ERR_NOMEM;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].high != 0) {
            place(&larger, &map->entries[i]);
        }
    }
    me_free(map->entries);
    *map = larger;
    return ME_OK;
}

static me_status fill_entry(const key *k, me_id_entry *entry)
{
    if (k->length > INLINE_LENGTH) {
        entry->text = me_alloc(k->length, 1, "alloc.id");
        if (entry->text == NULL) {
            return ME_ERR_NOMEM;
        }
        memcpy(entry->text, k->text, k->length);
    }
    entry->low = k->low;
    entry->high = k->high;
    return ME_OK;
}

me_status me_id_map_add(me_id_map *map, const char *id, size_t length,
                        bool *is_new_out, me_id_value **value_out)
{
    *is_new_out = false;
    if (map->n_used >= map->capacity / 2) {
        const me_status status = grow(map);
        if (status != ME_OK) {
            return status;
        }
    }
    const key k = make_key(id, length);
    size_t i = home(map, k.low, k.high);
    while (map->entries[i].high != 0 && !is_same(&map->entries[i], &k)) {
        i = (i + 1) & (map->capacity - 1);
    }
    *value_out = &map->entries[i].value;
    if (map->entries[i].high != 0) {
        return ME_OK;
    }
    const me_status status = fill_entry(&k, &map->entries[i]);
    if (status == ME_OK) {
        *is_new_out = true;
        map->n_used++;
    }
    return status;
}

void me_id_map_remove(me_id_map *map, me_id_value *value)
{
    me_id_entry *entry =
        (me_id_entry *)(void *)((char *)value - offsetof(me_id_entry, value));
    size_t hole = (size_t)(entry - map->entries);
    const size_t mask = map->capacity - 1;
    me_free(entry->text);
    map->n_used--;
    for (size_t i = (hole + 1) & mask; map->entries[i].high != 0;
         i = (i + 1) & mask) {
        const size_t wanted =
            home(map, map->entries[i].low, map->entries[i].high);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (me_id_entry){0};
}
