/* SPDX-License-Identifier: BSD-3-Clause */
#include "diff/places.h"

#include "base/alloc.h"

enum {
    FIRST_SLOTS = 32
};

/** The finalizer of MurmurHash3: each bit of the number counts for all. */
uint64_t me_place_of_number(uint64_t number)
{
    number = (number ^ (number >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    number = (number ^ (number >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return number ^ (number >> 33);
}

/** FNV-1a. */
uint64_t me_place_of_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

int64_t me_places_find(const me_places *places, uint64_t hash,
                       me_places_same *is_same, const void *list,
                       const void *key)
{
    const uint32_t last = places->n_slots - 1;
    for (uint32_t i = (uint32_t)hash & last;
         places->n_slots > 0 && places->slots[i] != 0; i = (i + 1) & last) {
        if (places->hashes[i] == hash &&
            is_same(list, places->slots[i] - 1, key)) {
            return places->slots[i] - 1;
        }
    }
    return ME_PLACE_NONE;
}

static void put(me_places *places, uint64_t hash, uint32_t slot)
{
    uint32_t i = (uint32_t)hash & (places->n_slots - 1);
    while (places->slots[i] != 0) {
        i = (i + 1) & (places->n_slots - 1);
    }
    places->slots[i] = slot;
    places->hashes[i] = hash;
}

/** Twice as many slots, with all that stands in those before. */
static me_status grow(me_places *places)
{
    const uint32_t n = places->n_slots == 0 ? FIRST_SLOTS : 2 * places->n_slots;
    me_places grown = {.slots = me_alloc(n, sizeof *grown.slots, "diff.places"),
                       .hashes =
                           me_alloc(n, sizeof *grown.hashes, "diff.places"),
                       .n_slots = n,
                       .n_entries = places->n_entries};
    if (grown.slots == NULL || grown.hashes == NULL) {
        me_places_fini(&grown);
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < places->n_slots; i++) {
        if (places->slots[i] != 0) {
            put(&grown, places->hashes[i], places->slots[i]);
        }
    }
    me_places_fini(places);
    *places = grown;
    return ME_OK;
}

me_status me_places_add(me_places *places, uint64_t hash)
{
    // A half of the slots is free, so that those looked at are few.
    if (places->n_entries >= places->n_slots / 2 && grow(places) != ME_OK) {
        return ME_ERR_NOMEM;
    }
    put(places, hash, ++places->n_entries);
    return ME_OK;
}

void me_places_fini(me_places *places)
{
    me_free(places->slots);
    me_free(places->hashes);
    *places = (me_places){.n_slots = 0};
}
