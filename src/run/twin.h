/**
 * @file
 * Programs of which one simulation stands for two. Of the ranks of a tensor
 * group of Megatron-LM's the first one alone counts the gradients that all of
 * them have, so its optimizer makes more norms than those of the others, and on a
 * stage that reads data the others make each micro-batch in another order.
 * Everything else is the same.
 *
 * What the norms change: they are blocks of 4 bytes that live side by side, each
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
 * What the order changes: the tensors of a micro-batch are allocated in a row, so
 * that as much is live after the last of them as on the others, and more than at
 * any time between. They lie elsewhere, though, and with them small blocks that
 * come later. So the small blocks of the others are followed beside
 * (alloc/twin_pool.h), and where that says that they may differ the other rank
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

/** What a rank makes of each micro-batch, if it is the first of its tensor group
 *  and the others, which make it in another order, may have its result. Local. */
me_twin_batch me_twin_batch_of(const me_plan *plan, int32_t rank);

/** Is one of these tensors said to have made a peak, as it may be another one of
 *  them on the others? Local. */
bool me_twin_has_peak_of_batch(const me_rank_result *result);

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
    /** Of a class that is simulated first: whose strand it can be
     *  (tensor/strand.h), or itself. */
    int32_t lead;
    int32_t strand;      /**< its place among the lead's, which has 0 */
    int32_t next_strand; /**< the class of the next one; 0: none */
    int32_t n_strands;   /**< of a lead: of all of them */
    /** Of the first class that does what others do: the last lead of those. */
    int32_t open;
    /** How many leads come before that of the one that stands for it: what
     *  processes are dealt. */
    int32_t task;
} me_twin;

/**
 * Find the twins, the kin and the strands among the classes of a plan. Local.
 *
 * @param simulation  of these classes
 * @param twins_out   one for each class
 */
void me_twins_find(const me_simulation *simulation, me_twin *twins_out);

#endif /* MEMEST_RUN_TWIN_H */
