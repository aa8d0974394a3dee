/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/simulate.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "report/verdict.h"
#include "run/limit_end.h"
#include "run/rank_parts.h"

typedef struct limited_run {
    bool is_oom, must_run_all; /* the latter: the run says nothing */
    uint32_t shard;            /* see me_limit_end_shard() */
    me_footprint footprint;
} limited_run;

/** As run_limited(). */
static me_status try_limited(const me_simulation *simulation, int32_t rank,
                             me_margin margin, me_diag *diag,
                             me_rank_result *result, limited_run *run_out)
{
    me_rank_parts p = me_rank_parts_begin(simulation, rank);
    me_status status = me_rank_parts_make_program(&p, NULL, diag);
    p.program.runs_all_rounds = simulation->runs_all_rounds;
    p.program.times_kernels = simulation->times_kernels;
    p.program.iterations = ME_LIMIT_ITERATIONS;
    if (status == ME_OK) {
        status = me_rank_parts_observe_limited(&p, margin, diag);
    }
    if (status == ME_OK) {
        status = me_rank_parts_run(&p, diag);
        run_out->must_run_all = p.program.must_run_all;
    }
    if (status == ME_OK && result != NULL) {
        status = me_limit_end_set(p.pool, p.engine, diag, result);
    }
    if (status == ME_OK) {
        run_out->is_oom = me_pool_observer_limit(p.pool).is_oom;
        run_out->shard = me_limit_end_shard(p.pool);
        run_out->footprint = me_rank_parts_footprint(&p);
        run_out->footprint.reserved_bytes =
            me_max_u64(run_out->footprint.reserved_bytes,
                       me_pool_peak(me_pool_observer_pool(p.pool),
                                    ME_POOL_RESERVED_BYTES));
        me_twin_watch_end(&p.watch, simulation->differs_from_twin);
    }
    me_rank_parts_fini(&p);
    return status;
}

/** Micro-batches were taken for like that are not: the same, without that. */
static me_simulation run_all(const me_simulation *simulation, int32_t rank,
                             me_diag *diag)
{
    me_log(ME_LOG_INFO, "rank %d: %s: every micro-batch is run", rank,
           diag->text);
    *diag = (me_diag){.status = ME_OK};
    me_simulation all = *simulation;
    all.runs_all_rounds = true;
    return all;
}

/** Another run, without anybody who listens but pool and device. It has more
 *  iterations, so it may have to run all where the first run had not. How it
 *  ends goes into @p result if there is one, whether it dies to @p run_out. */
static me_status run_limited(const me_simulation *simulation, int32_t rank,
                             me_margin margin, me_diag *diag,
                             me_rank_result *result, limited_run *run_out)
{
    *run_out = (limited_run){.is_oom = false};
    me_status status =
        try_limited(simulation, rank, margin, diag, result, run_out);
    if (run_out->must_run_all) {
        const me_simulation all = run_all(simulation, rank, diag);
        status = try_limited(&all, rank, margin, diag, result, run_out);
    }
    return status;
}

static me_simulation timing_kernels(const me_simulation *simulation)
{
    me_simulation timed = *simulation;
    timed.times_kernels = true;
    return timed;
}

/** By how much what it holds is doubtful at least, where timings are. */
static uint64_t least_timed(const me_simulation *simulation,
                            const me_rank_result *result)
{
    return simulation->alloc_conf.expandable_segments
               ? 0
               : result->timing_buffer_bytes;
}

/** What it holds where compiled kernels are timed, if that may be and there is not
 *  room for all that timings ask for; and by how much that is not what it holds
 *  where none is, which is a buffer at least: segments are cut otherwise by it,
 *  but for those that expand.
 *
 *  @param timed_out  as @p footprint where nobody doubts it, of no timing_bytes */
static me_status find_timed(const me_simulation *simulation, int32_t rank,
                            const me_footprint *footprint, me_diag *diag,
                            me_rank_result *result, me_footprint *timed_out)
{
    *timed_out =
        (me_footprint){footprint->reserved_bytes, footprint->outside_bytes, 0};
    if (result->timing_buffer_bytes == 0) {
        return ME_OK;
    }
    const me_margin none = {0, 0};
    const me_footprint most = {
        me_size_add(footprint->reserved_bytes, footprint->timing_bytes),
        footprint->outside_bytes, 0};
    const uint64_t least = least_timed(simulation, result);
    result->timing_buffer_bytes = least;
    if (me_margin_fits(simulation, &most, none)) {
        return ME_OK;
    }
    const me_simulation timed = timing_kernels(simulation);
    const me_margin endless = {0, ME_MARGIN_ENDLESS};
    limited_run run;
    const me_status status =
        run_limited(&timed, rank, endless, diag, NULL, &run);
    if (status != ME_OK) {
        return status;
    }
    const uint64_t held = run.footprint.reserved_bytes;
    const uint64_t without = footprint->reserved_bytes;
    result->timing_buffer_bytes =
        me_max_u64(least, held > without ? held - without : without - held);
    *timed_out = run.footprint;
    return ME_OK;
}

/** Would it die of the timing of kernels? */
static me_status try_timed(const me_simulation *simulation, int32_t rank,
                           const me_footprint *timed, me_diag *diag,
                           bool *is_oom_out)
{
    const me_margin none = {0, 0};
    *is_oom_out = false;
    if (timed->timing_bytes == 0 || me_margin_fits(simulation, timed, none)) {
        return ME_OK;
    }
    const me_simulation timing = timing_kernels(simulation);
    limited_run run;
    const me_status status = run_limited(&timing, rank, none, diag, NULL, &run);
    *is_oom_out = run.is_oom;
    return status;
}

/** How it ends with the memory that there is, where the first run did not show
 *  it; and with a band less, or with kernels that are timed, if it runs, with a
 *  band more if it dies.
 *
 *  @param shard_out  see me_limit_end_shard() */
static me_status find_end(const me_simulation *simulation, int32_t rank,
                          const me_footprint *footprint, me_diag *diag,
                          me_rank_result *result, uint32_t *shard_out)
{
    const me_config *config = simulation->plan->config;
    const me_margin none = {0, 0};
    limited_run run = {.is_oom = false};
    me_limit_result *limit = &result->limit;
    me_footprint timed = *footprint;
    me_status status = ME_OK;
    if (!me_margin_fits(simulation, footprint, none)) {
        status = run_limited(simulation, rank, none, diag, result, &run);
    }
    *shard_out = run.shard;
    const bool is_hopeless =
        status == ME_OK && limit->oom &&
        me_margin_is_hopeless(simulation, footprint, result);
    if (is_hopeless) {
        result->timing_buffer_bytes = least_timed(simulation, result);
    } else if (status == ME_OK) {
        status = find_timed(simulation, rank, footprint, diag, result, &timed);
    }
    const me_margin other = limit->oom ? me_margin_more(config, result)
                                       : me_margin_less(config, result);
    run.is_oom = is_hopeless;
    if (status == ME_OK && !is_hopeless &&
        !me_margin_fits(simulation, footprint, other)) {
        status = run_limited(simulation, rank, other, diag, NULL, &run);
    }
    if (status == ME_OK && !limit->oom && !run.is_oom) {
        status = try_timed(simulation, rank, &timed, diag, &run.is_oom);
    }
    limit->oom_with_less = limit->oom || run.is_oom;
    limit->oom_with_more = limit->oom && run.is_oom;
    return status;
}

/** What they take for whom the rank stands as well. */
static me_status collect_kin(const me_simulation *simulation, me_rank_parts *p,
                             me_diag *diag)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < simulation->n_kin; i++) {
        const me_kin *kin = &simulation->kin[i];
        status =
            me_rank_parts_collect_as(p, &kin->shards, diag, kin->result_out);
    }
    return status;
}

/** How it ends for them. @param shard  see me_limit_end_shard() */
static me_status end_kin(const me_simulation *simulation, uint32_t shard,
                         const me_rank_result *result, me_diag *diag)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < simulation->n_kin; i++) {
        const me_kin *kin = &simulation->kin[i];
        (*kin->result_out)->timing_buffer_bytes = result->timing_buffer_bytes;
        status = me_limit_end_set_as(&result->limit, shard, &kin->shards, diag,
                                     *kin->result_out);
    }
    return status;
}

/** A job that empties its cache ends with less than it took.
 *
 *  @param result  NULL: there is none */
static void raise_footprint(const me_rank_result *result,
                            me_footprint *footprint)
{
    if (result == NULL) {
        return;
    }
    const uint64_t most = me_result_most_bytes(result, ME_BASIS_RESERVED);
    if (most != ME_BYTES_UNKNOWN) {
        footprint->reserved_bytes = me_max_u64(footprint->reserved_bytes, most);
    }
}

/** A peak that is said to be a batch's is the rank's own. */
static void note_peaks(const me_simulation *simulation, int32_t rank,
                       const me_rank_result *result)
{
    if (simulation->differs_from_twin != NULL &&
        me_twin_batch_of(simulation->plan, rank).token_bytes > 0 &&
        me_twin_has_peak_of_batch(result)) {
        *simulation->differs_from_twin = true;
    }
}

/** A rank that is simulated, by itself or as a strand of the first one. */
typedef struct rank_run {
    me_simulation simulation;
    me_rank_parts parts;
    me_footprint footprint;
    me_rank_result *result;
} rank_run;

/** The rank, and its strands. */
typedef struct rank_runs {
    rank_run *items; /**< owned */
    uint32_t count;
    bool must_run_all;   /**< micro-batches were taken for like that are not */
    bool must_run_apart; /**< the strands have programs of their own */
} rank_runs;

static me_status begin_runs(const me_simulation *simulation, int32_t rank,
                            me_diag *diag, rank_runs *r)
{
    r->count = 1 + simulation->n_strands;
    r->items = me_alloc(r->count, sizeof *r->items, "simulate.ranks");
    if (r->items == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the ranks");
    }
    for (uint32_t i = 0; i < r->count; i++) {
        me_simulation *own = &r->items[i].simulation;
        const me_strand *strand = i == 0 ? NULL : &simulation->strands[i - 1];
        *own = *simulation;
        if (strand != NULL) {
            own->kin = strand->kin;
            own->n_kin = strand->n_kin;
            own->differs_from_twin = strand->differs_from_twin;
        }
        r->items[i].parts =
            me_rank_parts_begin(own, strand == NULL ? rank : strand->rank);
    }
    return ME_OK;
}

/** All who listen, and the program that they listen to. */
static me_status run_program(rank_runs *r, me_call_log *log, me_diag *diag)
{
    me_rank_parts *first = &r->items[0].parts;
    me_status status = me_rank_parts_make_program(first, log, diag);
    if (status == ME_OK) {
        me_strand_set(first->engine, r->count > 1 ? 0 : ME_STRANDS_ALL);
        status = me_rank_parts_observe(first, diag);
        me_strand_set(first->engine, ME_STRANDS_ALL);
    }
    for (uint32_t i = 1; status == ME_OK && i < r->count; i++) {
        status = me_rank_parts_add_strand(first, &r->items[i].parts, diag);
    }
    if (status == ME_OK) {
        status = me_rank_parts_run(first, diag);
        r->must_run_all = first->program.must_run_all;
        r->must_run_apart = first->program.must_run_apart;
    }
    return status;
}

/** What those who listened for it have seen. */
static me_status collect_run(rank_run *x, me_diag *diag)
{
    const me_simulation *s = &x->simulation;
    me_status status = me_rank_parts_collect(&x->parts, diag, &x->result);
    if (status == ME_OK) {
        status = collect_kin(s, &x->parts, diag);
    }
    if (status == ME_OK) {
        x->footprint = me_rank_parts_footprint(&x->parts);
        raise_footprint(x->result, &x->footprint);
        me_twin_watch_end(&x->parts.watch, s->differs_from_twin);
        note_peaks(s, x->parts.rank, x->result);
    }
    return status;
}

static void count_events(const rank_run *first, const me_call_log *log)
{
    const uint64_t events = me_engine_events(first->parts.engine);
    if (first->simulation.n_events != NULL) {
        *first->simulation.n_events += events;
    }
    me_log(ME_LOG_DEBUG, "rank %d: %llu events, %llu calls", first->parts.rank,
           (unsigned long long)events,
           (unsigned long long)me_call_log_count(log));
}

static me_status end_run(rank_run *x, me_diag *diag)
{
    uint32_t shard = 0;
    const me_status status = find_end(&x->simulation, x->parts.rank,
                                      &x->footprint, diag, x->result, &shard);
    return status == ME_OK ? end_kin(&x->simulation, shard, x->result, diag)
                           : status;
}

/** Strands before the engine that they borrow. */
static void end_parts(rank_runs *r)
{
    for (uint32_t i = r->items == NULL ? 0 : r->count; i > 0; i--) {
        me_rank_parts_fini(&r->items[i - 1].parts);
    }
}

/** As me_simulate_rank(). @param r  all zero; the caller gives its items back */
static me_status simulate_runs(const me_simulation *simulation, int32_t rank,
                               me_call_log *log, me_diag *diag, rank_runs *r)
{
    me_status status = begin_runs(simulation, rank, diag, r);
    if (status == ME_OK) {
        status = run_program(r, log, diag);
    }
    for (uint32_t i = 0; status == ME_OK && i < r->count; i++) {
        status = collect_run(&r->items[i], diag);
    }
    if (status == ME_OK) {
        count_events(&r->items[0], log);
    }
    end_parts(r);
    for (uint32_t i = 0; status == ME_OK && i < r->count; i++) {
        status = end_run(&r->items[i], diag);
    }
    return status;
}

/** As simulate_runs(), with results where they belong. */
static me_status simulate_rank(const me_simulation *simulation, int32_t rank,
                               me_call_log *log, me_diag *diag,
                               me_rank_result **result_out, rank_runs *r)
{
    *r = (rank_runs){.count = 0};
    const me_status status = simulate_runs(simulation, rank, log, diag, r);
    for (uint32_t i = 0; r->items != NULL && i < r->count; i++) {
        if (status != ME_OK) {
            me_rank_result_destroy(r->items[i].result);
        } else if (i == 0) {
            *result_out = r->items[i].result;
        } else {
            *simulation->strands[i - 1].result_out = r->items[i].result;
        }
    }
    me_free(r->items);
    return status;
}

me_status me_simulate_rank(const me_simulation *simulation, int32_t rank,
                           me_call_log *log, me_diag *diag,
                           me_rank_result **result_out)
{
    me_diag own = {.status = ME_OK};
    rank_runs r;
    me_simulation s = *simulation;
    me_status status = simulate_rank(&s, rank, log, &own, result_out, &r);
    for (int i = 0; i < 2 && (r.must_run_apart || r.must_run_all); i++) {
        if (r.must_run_all) {
            s = run_all(&s, rank, &own);
        } else {
            own = (me_diag){.status = ME_OK};
            s.n_strands = 0;
        }
        me_call_log_clear(log);
        status = simulate_rank(&s, rank, log, &own, result_out, &r);
    }
    if (status != ME_OK) {
        *diag = own;
    }
    return status;
}
