/**
 * @file
 * Programs of which one simulation stands for two. Of the ranks of a tensor
 * group of Megatron-LM's the first one alone counts the gradients that all of
 * them have, so its optimizer makes more norms than those of the others;
 * everything else is the same on a stage that reads no data.
 *
 * What that changes: norms are blocks of 4 bytes that live side by side, each
 * of the allocator's least size, and go before the total is used. Of equal
 * blocks that nobody frees in between the allocator places the first n where it
 * places them when more follow, so the rank with fewer of them finds room
 * wherever the other one does; once all have gone, whatever was free is free
 * again, as a whole. Both allocators are then in one state, provided that the
 * one with more norms did not call the driver. And as long as more is live at
 * another moment of the span of time that is looked at, no peak tells them
 * apart. Both are seen while the rank with more norms runs
 * (me_simulation.differs_from_twin); where one does not hold, the other rank
 * runs too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_TWIN_H
#define MEMEST_RUN_TWIN_H

#include "alloc/pool_observer.h"
#include "run/simulate.h"
#include "track/tracker.h"

/** Watches a rank that makes more norms than its twin. Zero but for `pool` and
 * `tracker` at the start. */
typedef struct me_twin_watch {
    const me_pool_observer *pool; /**< borrowed */
    me_tracker *tracker;          /**< borrowed; NULL: nobody asks for peaks */
    uint64_t driver_calls;        /**< of the pool when it was last told */
    bool has_called; /**< the driver was called within a twin span */
} me_twin_watch;

/** me_twin_listener.tell() of an me_twin_watch, @p self. */
void me_twin_watch_tell(void *self, bool begins);

/** The program has ended. @param differs_from_twin  set if the result may be
 * the rank's own, else left as it is; or NULL */
void me_twin_watch_end(const me_twin_watch *watch, bool *differs_from_twin);

/** The twin of a class of ranks, and its kin (plan.h), whose program is the same
 *  but for names. */
typedef struct me_twin {
    int32_t first; /**< the class that is simulated first and whose result this
                       one may take; itself: it has no twin */
    int32_t kin;   /**< the class whose simulation stands for this one as well,
                       and which has the same twin; itself: none */
    int32_t next_kin; /**< the next class that `kin` stands for; 0: none */
    int32_t number; /**< how many classes that neither have a twin nor kin come
                       before the one that stands for it */
} me_twin;

/**
 * Find the twins and the kin among the classes of a plan. Local.
 *
 * @param simulation  of these classes
 * @param twins_out   one for each class
 */
void me_twins_find(const me_simulation *simulation, me_twin *twins_out);

#endif /* MEMEST_RUN_TWIN_H */
