/**
 * @file
 * The simulation of one rank: its program on an engine, with the allocator,
 * the trackers and, if asked for, the event log as observers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_SIMULATE_H
#define MEMEST_RUN_SIMULATE_H

#include "alloc/alloc_conf.h"
#include "collectives/call_log.h"
#include "collectives/group.h"
#include "plan/plan.h"
#include "run/job_card.h"
#include "tensor/engine.h"
#include "track/memory_trace.h"
#include "track/result.h"

/** A rank that another one's simulation stands for as well: its shards are of
 *  the same kin (plan.h). */
typedef struct me_kin {
    me_shard_modules shards;
    me_rank_result **result_out; /**< owned by the caller once it is set, also
                                      after a failure */
} me_kin;

/** A rank that another one's program is told to as well, as a strand of it
 *  (tensor/strand.h). All borrowed. */
typedef struct me_strand {
    int32_t rank;
    bool *differs_from_twin; /**< as me_simulation's, as what follows */
    const me_kin *kin;
    uint32_t n_kin;
    me_rank_result **result_out; /**< owned by the caller once it is set; it is
                                      not where the rank has to be simulated by
                                      itself after all */
} me_strand;

/** What does not change from rank to rank. All borrowed. */
typedef struct me_simulation {
    const me_plan *plan;
    const me_job_card *card;
    me_alloc_conf alloc_conf;
    uint64_t memory_limit_bytes; /**< of the allocator; 0: none */
    me_comm_group_of group_of;   /**< who is in which group */
    const void *group_self;
    const char *events_path; /**< NULL: no event log */
    int32_t events_rank;
    int32_t events_iteration;
    bool runs_all_rounds; /**< see me_megatron_spec */
    bool times_kernels;   /**< likewise */
    bool keeps_course;    /**< see me_tracker_keep_course() */
    bool keeps_totals;    /**< alone; see me_tracker_keep_totals() */
    uint64_t *n_events;   /**< events are counted here, for messages; or NULL */
    bool *differs_from_twin; /**< set to true where the twin's result may differ
                                (twin.h); or NULL */
    const me_kin *kin;       /**< for whom the rank stands as well */
    uint32_t n_kin;
    const me_strand *strands; /**< that are told the program as well */
    uint32_t n_strands;
    /** Of classes that are looked for, with the first; 0: none are. */
    int32_t strands_max;
} me_simulation;

/**
 * Simulate a rank.
 *
 * @param log         the rank's calls of collectives are recorded here
 * @param result_out  owned by the caller
 * @return ME_OK; the engine's failure; ME_ERR_NOMEM, ME_ERR_IO
 */
me_status me_simulate_rank(const me_simulation *simulation, int32_t rank,
                           me_call_log *log, me_diag *diag,
                           me_rank_result **result_out) ME_MUST_CHECK;

/** A rank's memory as it was traced; borrowed while it is told. */
typedef struct me_traced {
    const me_memory_trace *trace; /**< of the whole run */
    const me_module_tree *tree;
    const me_pool_listed *blocks; /**< at the last point, by address; of a
                                       reader that lists them */
    uint32_t n_blocks;
    uint32_t n_entries; /**< of the trace, up to there */
} me_traced;

/** Who reads a trace. */
typedef struct me_trace_reader {
    int32_t iteration; /**< whose marks are kept; below -1: none */
    bool lists_blocks; /**< where a report ends: at the last point */
    /** @return ME_OK, or the failure that ends it */
    me_status (*read)(void *self, const me_traced *traced, me_diag *diag);
    void *self;
} me_trace_reader;

/** Run the program of a rank for the trace of its allocator, with memory without
 *  end. Local. @return ME_OK; the engine's failure; ME_ERR_NOMEM; what the
 *  reader returns */
me_status me_simulate_traced(const me_simulation *simulation, int32_t rank,
                             const me_trace_reader *reader,
                             me_diag *diag) ME_MUST_CHECK;

/** Who hooks into the engine of a rank before its program runs. */
typedef struct me_watcher {
    /** @return ME_OK, or the failure that ends the simulation */
    me_status (*begin)(void *self, me_engine *e, me_diag *diag);
    /** The program has ended; the engine still is. @return as begin() */
    me_status (*end)(void *self, me_diag *diag);
    void *self;
} me_watcher;

/** Run the program of a rank for a watcher alone. Local.
 *  @return ME_OK; the engine's failure; ME_ERR_NOMEM */
me_status me_simulate_watched(const me_plan *plan, const me_job_card *card,
                              int32_t rank, const me_watcher *watcher,
                              me_diag *diag) ME_MUST_CHECK;

/** Append the rank's module tree, a line a module (`--dump modules`). */
me_status me_simulate_modules(const me_plan *plan, int32_t rank, me_diag *diag,
                              me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_RUN_SIMULATE_H */
