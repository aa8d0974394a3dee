/**
 * @file
 * Sends and receives of a rank that share one communicator: NCCL runs them on
 * one stream, in the order in which they were asked for, and each occupies it
 * from when its turn comes until the other side's has come too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_TRANSFERS_H
#define MEMEST_TIME_TRANSFERS_H

#include "time/clock_program.h"
#include "time/stage_links.h"

/** A batch. */
typedef struct me_transfer {
    me_time_item item;   /**< an exchange */
    int64_t asked;       /**< for, with all kernels before done */
    int64_t done;        /**< ME_TIME_NEVER: not yet */
    uint32_t numbers[4]; /**< on the links, by bit */
    bool has_begun;
    bool is_taken; /**< an action has waited for it */
} me_transfer;

typedef struct me_transfers {
    me_transfer *items; /**< owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t n_done; /**< of them, from the first on */
    int32_t stage;   /**< the rank's */
} me_transfers;

/** What a bit of an exchange of @p stage is of which link. */
me_link_end me_link_end_of(const me_time_item *exchange, int32_t stage,
                           unsigned bit);

/** Ask for one more. @return ME_OK or ME_ERR_NOMEM */
me_status me_transfers_add(me_transfers *t, const me_time_item *exchange,
                           int64_t asked) ME_MUST_CHECK;

/**
 * Run as many as the other sides allow.
 *
 * @param has_moved_out  set if another one has begun or is done, else as it was
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_transfers_run(me_transfers *t, me_links *links,
                           bool *has_moved_out) ME_MUST_CHECK;

/** The one that brings what an action needs; NULL: none. Borrowed. */
me_transfer *me_transfers_find(me_transfers *t, const me_time_item *action);

/** When the last one was done; ME_TIME_NEVER: there was none. */
int64_t me_transfers_end(const me_transfers *t);

void me_transfers_fini(me_transfers *t);

#endif /* MEMEST_TIME_TRANSFERS_H */
