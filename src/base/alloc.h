/**
 * @file
 * Host memory: the only place that calls malloc. Every request has a name, so
 * that memest can say what it uses itself and tests can make the n-th fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_ALLOC_H
#define MEMEST_BASE_ALLOC_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * Zeroed memory for @p count items. Local.
 *
 * @param count  items; 0 gives a block that can be freed
 * @param size   bytes of one item
 * @param name   what it is for, a static string such as "plan.layers"
 * @return the block, owned by the caller, or NULL if there is none (also when
 *         the product overflows)
 */
void *me_alloc(size_t count, size_t size, const char *name) ME_MUST_CHECK;

/**
 * Make an array larger, keeping its items; what is new is not cleared. Local.
 *
 * @return the array, owned by the caller; NULL on failure, and then @p items
 *         is still valid and still the caller's
 */
void *me_realloc(void *items, size_t count, size_t size,
                 const char *name) ME_MUST_CHECK;

/**
 * Room for one more item in a growing array, doubled where there is none. Local.
 *
 * @param count     items that there are; none if @p items is NULL
 * @param capacity  for how many there is room; follows
 * @return as me_realloc(), or @p items where there is room
 */
void *me_grow(void *items, uint32_t count, uint32_t *capacity, size_t size,
              const char *name) ME_MUST_CHECK;

/** Give back a block of me_alloc() or me_realloc(); NULL is allowed. Local. */
void me_free(void *block);

/** A copy of @p text, owned by the caller; NULL if there is no memory. */
char *me_strdup(const char *text, const char *name) ME_MUST_CHECK;

/**
 * For tests: let the n-th request of this thread from now on fail, and all
 * after it.
 *
 * @param nth  1 for the very next; 0 switches failing off
 */
void me_alloc_fail_at(uint64_t nth);

/** Requests of this thread since the last me_alloc_fail_at(). */
uint64_t me_alloc_count(void);

#endif /* MEMEST_BASE_ALLOC_H */
