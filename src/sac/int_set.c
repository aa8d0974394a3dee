/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/int_set.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

enum {
    SMALLEST = 8,
    LINEAR_PROBES = 9,
    PERTURB_SHIFT = 5,
    LARGE = 50000, /* members above which a set grows more slowly */
    FREE = -1,
    REMOVED = -2
};

static void fail(me_int_set *set)
{
    set->status = ME_ERR_NOMEM;
}

/** Where @p value is, or the free slot where it belongs. */
static int32_t *find(int32_t *slots, uint32_t mask, int32_t value)
{
    uint32_t perturb = (uint32_t)value;
    uint32_t i = (uint32_t)value & mask;
    for (;;) {
        const uint32_t probes = i + LINEAR_PROBES <= mask ? LINEAR_PROBES : 0;
        for (uint32_t k = 0; k <= probes; k++) {
            if (slots[i + k] == value || slots[i + k] == FREE) {
                return &slots[i + k];
            }
        }
        perturb >>= PERTURB_SHIFT;
        i = (i * 5 + 1 + perturb) & mask;
    }
}

static bool is_member(int32_t slot)
{
    return slot >= 0;
}

/** More slots than @p members; those of removed members are free again. */
static bool resize(me_int_set *set, uint32_t members)
{
    uint32_t count = SMALLEST;
    while (count <= members) {
        count *= 2;
    }
    int32_t *slots = me_alloc(count, sizeof *slots, "int_set.slots");
    if (slots == NULL) {
        fail(set);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = FREE;
    }
    for (uint32_t i = 0; set->slots != NULL && i <= set->mask; i++) {
        if (is_member(set->slots[i])) {
            *find(slots, count - 1, set->slots[i]) = set->slots[i];
        }
    }
    me_free(set->slots);
    set->slots = slots;
    set->mask = count - 1;
    set->fill = set->used;
    return true;
}

/** Slots for a set that has none yet. */
static bool prepare(me_int_set *set)
{
    return set->status == ME_OK && (set->slots != NULL || resize(set, 0));
}

static uint32_t grown(const me_int_set *set)
{
    return set->used > LARGE ? set->used * 2 : set->used * 4;
}

void me_int_set_fini(me_int_set *set)
{
    me_free(set->slots);
    *set = (me_int_set){.slots = NULL};
}

void me_int_set_add(me_int_set *set, int32_t value)
{
    ME_ASSERT(value >= 0);
    if (!prepare(set)) {
        return;
    }
    int32_t *slot = find(set->slots, set->mask, value);
    if (*slot == value) {
        return;
    }
    *slot = value;
    set->fill++;
    set->used++;
    if (set->fill * 5 >= set->mask * 3) {
        (void)resize(set, grown(set));
    }
}

void me_int_set_update(me_int_set *set, const me_int_set *other)
{
    if (other->status != ME_OK) {
        fail(set);
    }
    if (set == other || other->used == 0 || !prepare(set)) {
        return;
    }
    if ((set->fill + other->used) * 5 >= set->mask * 3 &&
        !resize(set, (set->used + other->used) * 2)) {
        return;
    }
    if (set->fill == 0 && set->mask == other->mask &&
        other->fill == other->used) {
        memcpy(set->slots, other->slots,
               ((size_t)other->mask + 1) * sizeof *set->slots);
        set->fill = other->fill;
        set->used = other->used;
        return;
    }
    // Into an empty set nothing grows on the way: there is room for all.
    const bool grows = set->fill > 0;
    uint32_t position = 0;
    int32_t value = 0;
    while (me_int_set_next(other, &position, &value)) {
        if (grows) {
            me_int_set_add(set, value);
        } else {
            *find(set->slots, set->mask, value) = value;
        }
    }
    if (!grows) {
        set->fill = other->used;
        set->used = other->used;
    }
}

/** A copy of @p set from which the few members of @p other are taken. */
static void copy_without(me_int_set *copy, const me_int_set *set,
                         const me_int_set *other)
{
    me_int_set_update(copy, set);
    uint32_t position = 0;
    int32_t value = 0;
    while (copy->status == ME_OK && me_int_set_next(other, &position, &value)) {
        int32_t *slot = find(copy->slots, copy->mask, value);
        if (*slot == value) {
            *slot = REMOVED;
            copy->used--;
        }
    }
    if (copy->status == ME_OK && copy->fill - copy->used > copy->mask / 4) {
        (void)resize(copy, grown(copy));
    }
}

void me_int_set_subtract(me_int_set *set, const me_int_set *other)
{
    me_int_set rest = {.status = set->status};
    if (other->status != ME_OK) {
        fail(&rest);
    }
    if (set->used / 4 > other->used) {
        copy_without(&rest, set, other);
    } else {
        uint32_t position = 0;
        int32_t value = 0;
        while (me_int_set_next(set, &position, &value)) {
            if (!me_int_set_has(other, value)) {
                me_int_set_add(&rest, value);
            }
        }
    }
    me_int_set_fini(set);
    *set = rest;
}

bool me_int_set_has(const me_int_set *set, int32_t value)
{
    return set->slots != NULL && *find(set->slots, set->mask, value) == value;
}

bool me_int_set_next(const me_int_set *set, uint32_t *position,
                     int32_t *value_out)
{
    while (set->slots != NULL && *position <= set->mask) {
        const int32_t slot = set->slots[(*position)++];
        if (is_member(slot)) {
            *value_out = slot;
            return true;
        }
    }
    return false;
}

me_status me_int_set_status(const me_int_set *set)
{
    return set->status;
}
