/**
 * @file
 * What the simulation of one rank is made of: its program and who listens,
 * wired and run once. Who asks for it again under other conditions is
 * simulate.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_RANK_PARTS_H
#define MEMEST_RUN_RANK_PARTS_H

#include "alloc/device_observer.h"
#include "alloc/pool_observer.h"
#include "collectives/rank_comms.h"
#include "run/clock.h"
#include "run/late.h"
#include "run/margin.h"
#include "run/program.h"
#include "run/simulate.h"
#include "run/twin.h"
#include "tensor/strand.h"
#include "track/event_log.h"
#include "track/memory_trace.h"
#include "track/tracker.h"

/** Each is NULL until it is made; all zero is none. */
typedef struct me_rank_parts {
    const me_simulation *simulation;
    int32_t rank;
    int32_t place_rank; /**< whose place on the machine counts: one for all
                             ranks with equal programs */
    me_comm_group groups[ME_GROUP_COUNT]; /**< that rank's; of no members: it
                                               has none */
    me_engine *engine;
    me_program program;
    me_pool_observer *pool;
    me_late_frees late;
    me_device_observer *device;
    me_tracker *tracker;
    me_event_log *events;
    me_rank_comms *comms;
    me_time_recorder *clock; /**< NULL: the card's rates are not known */
    me_twin_watch watch;
    struct me_rank_parts *strands[ME_STRANDS_MAX]; /**< beside it; borrowed */
    int32_t n_strands;
    bool is_strand; /**< the engine is another one's */
} me_rank_parts;

/** Nothing is made yet. It points into itself once it is: not to be moved. */
me_rank_parts me_rank_parts_begin(const me_simulation *simulation,
                                  int32_t rank);

/** The engine and its program, and communicators that write to @p log, unless it
 *  is NULL. @return ME_OK, ME_ERR_NOMEM */
me_status me_rank_parts_make_program(me_rank_parts *p, me_call_log *log,
                                     me_diag *diag) ME_MUST_CHECK;

/** All who listen where memory never ends: what the job wants. */
me_status me_rank_parts_observe(me_rank_parts *p, me_diag *diag) ME_MUST_CHECK;

/** Pool and device alone, with the card's memory but for @p margin, or what the
 *  allocator may hold: how the job ends. */
me_status me_rank_parts_observe_limited(me_rank_parts *p, me_margin margin,
                                        me_diag *diag) ME_MUST_CHECK;

/** Device and pool as for what the job wants, and @p trace, which hears of all
 *  that they do; borrowed. */
me_status me_rank_parts_observe_traced(me_rank_parts *p, me_memory_trace *trace,
                                       me_diag *diag) ME_MUST_CHECK;

/** Those who listen for a rank that is the next strand of @p first's program. It
 *  borrows the engine, and goes before it. @return as me_rank_parts_observe() */
me_status me_rank_parts_add_strand(me_rank_parts *first, me_rank_parts *strand,
                                   me_diag *diag) ME_MUST_CHECK;

/** Run the program; one that dies for want of memory is no failure. */
me_status me_rank_parts_run(me_rank_parts *p, me_diag *diag) ME_MUST_CHECK;

/** What the rank holds now. */
me_footprint me_rank_parts_footprint(const me_rank_parts *p);

/** What those who listened have seen; the result is the caller's. */
me_status me_rank_parts_collect(me_rank_parts *p, me_diag *diag,
                                me_rank_result **result_out) ME_MUST_CHECK;
/** The same of a rank for which this one stands, after it: but for its time. */
me_status me_rank_parts_collect_as(me_rank_parts *p,
                                   const me_shard_modules *shards,
                                   me_diag *diag,
                                   me_rank_result **result_out) ME_MUST_CHECK;

/** Give back all that was made. */
void me_rank_parts_fini(me_rank_parts *p);

#endif /* MEMEST_RUN_RANK_PARTS_H */
