/**
 * @file
 * A set of small numbers as CPython keeps one (Objects/setobject.c, read at 3.11
 * and held to its answers by tests/unit/sac/test_int_set.c): which order its
 * members come in decides between candidates that are worth the same.
 *
 * A number is its own hash, so the order follows from what was added, and in
 * which order; nothing of it is random. The first failure sticks, as in me_str.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_INT_SET_H
#define MEMEST_SAC_INT_SET_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** All zero is an empty set. */
typedef struct me_int_set {
    int32_t *slots; /**< owned; NULL: as empty as with eight free slots */
    uint32_t mask;  /**< slots - 1 */
    uint32_t fill;  /**< slots in use, those of removed members as well */
    uint32_t used;  /**< members */
    me_status status;
} me_int_set;

/** Give back its memory; it is empty again. */
void me_int_set_fini(me_int_set *set);

/** `set.add(value)`; @p value is not negative. */
void me_int_set_add(me_int_set *set, int32_t value);

/** `set.update(other)`. */
void me_int_set_update(me_int_set *set, const me_int_set *other);

/** `set = set - other`. */
void me_int_set_subtract(me_int_set *set, const me_int_set *other);

/** `value in set`. */
bool me_int_set_has(const me_int_set *set, int32_t value);

/**
 * The next member in Python's order.
 *
 * @param position   where to go on, 0 at first; moves
 * @param value_out  the member
 * @return whether there was one
 */
bool me_int_set_next(const me_int_set *set, uint32_t *position,
                     int32_t *value_out);

/** ME_OK; ME_ERR_NOMEM if memory ran out, and then members are missing. */
me_status me_int_set_status(const me_int_set *set);

#endif /* MEMEST_SAC_INT_SET_H */
