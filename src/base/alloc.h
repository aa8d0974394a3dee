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
 * Room for item @p at of a growing array, doubled until there is; what is new is
 * not set. Local.
 *
 * @param capacity  for how many there is room; follows
 * @return as me_grow()
 */
void *me_grow_to(void *items, uint32_t at, uint32_t *capacity, size_t size,
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
 * Requests that found no memory, of this thread and of those that have worked
 * for it (base/workers.h); it only grows. Local.
 */
uint64_t me_alloc_lost(void);

/** A request that is refused elsewhere, such as by an arena's ceiling. Local. */
void me_alloc_lose(const char *name);

/** A file that is there could not be read, for want of descriptors or since its
 *  disk failed, which is no answer about it. Counts with the requests. Local. */
void me_alloc_lose_file(void);

/**
 * No answer on a lost allocation: whoever is about to hand out a result asks
 * here, so that it does not matter whether everybody on the way has passed the
 * failure on. Local.
 *
 * @param before  me_alloc_lost() when the work began
 * @param status  what came of it
 * @return @p status; ME_ERR_NOMEM where a request has been lost since; ME_ERR_IO
 *         where a file has and nothing else is wrong
 */
me_status me_alloc_check(uint64_t before, me_status status,
                         me_diag *diag) ME_MUST_CHECK;

/** For base/workers.h: what another thread has lost counts for this one.
 *  Local. */
void me_alloc_set_lost(uint64_t all, const char *name);

/** Name of the last request that was lost; NULL: none was. Local. */
const char *me_alloc_lost_name(void);

/**
 * For tests: let the n-th request of this thread from now on fail, and all
 * after it.
 *
 * @param nth  1 for the very next; 0 switches failing off
 */
void me_alloc_fail_at(uint64_t nth);

/** As me_alloc_fail_at(), but those after it are granted. */
void me_alloc_fail_once(uint64_t nth);

/** Who is told of a request: the n-th since me_alloc_fail_at(), from 1 on. */
typedef void me_alloc_seen(void *self, uint64_t nth, const char *name);

/** For tests: tell every request of this thread; NULL: nobody listens. */
void me_alloc_watch(me_alloc_seen *seen, void *self);

/** Requests of this thread since the last me_alloc_fail_at(). */
uint64_t me_alloc_count(void);

#endif /* MEMEST_BASE_ALLOC_H */
