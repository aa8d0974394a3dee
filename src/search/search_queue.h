/**
 * @file
 * Candidates that wait to be looked at, of which the one with the least step, as
 * far as it is known, comes first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SEARCH_QUEUE_H
#define MEMEST_SEARCH_SEARCH_QUEUE_H

#include "search/candidates.h"

/** One of them; among equal steps fewer bytes come first, then a lower index. */
typedef struct me_search_entry {
    me_search_bound bound;
    uint32_t index; /**< of the candidate */
} me_search_entry;

/** All zero is none. */
typedef struct me_search_queue {
    me_search_entry *items; /**< a heap: the first comes first; owned */
    uint32_t count;
} me_search_queue;

/** Does @p a come before @p b? Local. */
bool me_search_entry_is_before(const me_search_entry *a,
                               const me_search_entry *b);

/** An empty queue for up to @p capacity entries. Local.
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_search_queue_init(uint32_t capacity,
                               me_search_queue *queue_out) ME_MUST_CHECK;

/** Give back. Local. */
void me_search_queue_fini(me_search_queue *queue);

/** Put one in; there is room. Local. */
void me_search_queue_push(me_search_queue *queue, me_search_entry entry);

/** Take the first one out; there is one. Local. */
void me_search_queue_pop(me_search_queue *queue);

#endif /* MEMEST_SEARCH_SEARCH_QUEUE_H */
