/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/units.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/workers.h"
#include "collectives/check.h"
#include "tensor/strand.h"

static void find_twins(me_units *u)
{
    if (u->shares_results) {
        me_twins_find(&u->simulation, u->twins);
        return;
    }
    for (int32_t i = 0; i < u->count; i++) {
        u->twins[i] = (me_twin){.first = i,
                                .kin = i,
                                .number = i,
                                .lead = i,
                                .n_strands = 1,
                                .task = i};
    }
}

me_status me_units_init(me_units *units, me_diag *diag)
{
    me_units *u = units;
    const size_t n = (size_t)u->count;
    u->twins = me_alloc(n, sizeof *u->twins, "units.twins");
    u->logs = me_alloc(n, sizeof(me_call_log *), "units.logs");
    u->log_unit = me_alloc(n, sizeof(int32_t), "units.logs");
    u->results = me_alloc(n, sizeof(me_rank_result *), "units.results");
    u->ends = me_alloc(n, sizeof *u->ends, "units.ends");
    if (u->twins == NULL || u->logs == NULL || u->log_unit == NULL ||
        u->results == NULL || u->ends == NULL ||
        me_digest_map_init(&u->programs, n) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the ranks");
    }
    atomic_init(&u->first_failed, u->count);
    atomic_flag_clear(&u->is_looked_up);
    find_twins(u);
    return ME_OK;
}

void me_units_fini(me_units *units)
{
    me_units *u = units;
    for (int32_t i = 0; i < u->count; i++) {
        if (u->logs != NULL) {
            me_call_log_destroy(u->logs[i]);
        }
        if (u->results != NULL) {
            me_rank_result_destroy(u->results[i]);
        }
    }
    me_digest_map_fini(&u->programs);
    me_free(u->twins);
    me_free(u->logs);
    me_free(u->log_unit);
    me_free(u->results);
    me_free(u->ends);
    u->count = 0;
}

bool me_units_is_mine(const me_units *units, int32_t unit)
{
    return units->twins[unit].task % units->n_processes == units->process;
}

me_rank_result *me_units_result(const me_units *units, int32_t unit)
{
    return units->results[unit] != NULL
               ? units->results[unit]
               : units->results[units->twins[unit].first];
}

/** The rank that stands for a unit. With --events its own rank is asked for,
 *  so the class that holds it is represented by it. */
static int32_t rank_of_unit(const me_units *u, int32_t unit)
{
    if (!u->are_classes) {
        return unit;
    }
    const me_plan *plan = u->simulation.plan;
    const int32_t asked = u->simulation.events_rank;
    return u->simulation.events_path != NULL && plan->class_of[asked] == unit
               ? asked
               : me_plan_representative(plan, unit);
}

static void note_failure(me_units *u, int32_t unit)
{
    int first = atomic_load(&u->first_failed);
    while (unit < first &&
           !atomic_compare_exchange_weak(&u->first_failed, &first, unit)) {
    }
}

/** Those for whom a unit stands as well. @return ME_OK or ME_ERR_NOMEM */
static me_status list_kin(me_units *u, int32_t unit, me_kin **kin_out,
                          uint32_t *count_out)
{
    uint32_t n = 0;
    for (int32_t i = u->twins[unit].next_kin; i != 0;
         i = u->twins[i].next_kin) {
        n++;
    }
    me_kin *kin = me_alloc(n, sizeof *kin, "units.kin");
    if (kin == NULL) {
        return me_fail(&u->ends[unit].diag, ME_ERR_NOMEM,
                       "no host memory for the ranks");
    }
    uint32_t k = 0;
    for (int32_t i = u->twins[unit].next_kin; i != 0;
         i = u->twins[i].next_kin) {
        kin[k++] = (me_kin){me_plan_shard_modules(u->simulation.plan, i),
                            &u->results[i]};
    }
    *kin_out = kin;
    *count_out = n;
    return ME_OK;
}

static void lock_programs(me_units *u)
{
    while (atomic_flag_test_and_set(&u->is_looked_up)) {
    }
}

/** Will there be more calls than a check replays? Then they are only looked at
 *  where ranks do not agree, and are made anew for that. A guess: what is held
 *  decides how long that takes, and nothing else. */
static bool are_too_many(const me_units *u)
{
    enum {
        FEW = ME_CHECK_MAX_CALLS / 10 // to say nothing of the rest by
    };

    return u->n_calls > FEW && u->n_calls / (uint64_t)u->n_seen >
                                   ME_CHECK_MAX_CALLS / (uint64_t)u->count;
}

/** A log for a unit, of digests alone if there will be too many calls and none is
 *  repeated. */
static me_status make_log(me_units *u, int32_t unit)
{
    const me_status status = me_call_log_create(&u->logs[unit]);
    if (status == ME_OK &&
        !me_plan_is_steady(u->simulation.plan, rank_of_unit(u, unit))) {
        lock_programs(u);
        const bool is_dropped = are_too_many(u);
        atomic_flag_clear(&u->is_looked_up);
        if (is_dropped) {
            me_call_log_drop_calls(u->logs[unit]);
        }
    }
    return status;
}

/** Hold no calls that another unit's log has as well, nor too many. */
static void digest_log(me_units *u, int32_t unit)
{
    me_call_log *log = u->logs[unit];
    if (me_call_log_status(log) != ME_OK) {
        return; // the check says so
    }
    lock_programs(u);
    const int kept =
        me_digest_map_get(&u->programs, me_call_log_digest(log), unit);
    u->n_seen++;
    u->n_calls += kept == unit ? me_call_log_count(log) : 0;
    const bool is_dropped = kept != unit || are_too_many(u);
    atomic_flag_clear(&u->is_looked_up);
    if (is_dropped) {
        me_call_log_drop_calls(log);
    }
}

/** A unit and those that are simulated as its strands. */
typedef struct strands {
    int32_t units[ME_STRANDS_MAX];
    me_kin *kin[ME_STRANDS_MAX];      /**< for whom each stands; owned */
    me_strand others[ME_STRANDS_MAX]; /**< all but the first */
    uint32_t n_kin[ME_STRANDS_MAX];
    int32_t count;
} strands;

/** @return as list_kin() */
static me_status add_strand(me_units *u, int32_t unit, strands *x)
{
    const int32_t i = x->count++;
    x->units[i] = unit;
    const me_status status = list_kin(u, unit, &x->kin[i], &x->n_kin[i]);
    if (status == ME_OK && i > 0) {
        x->others[i - 1] = (me_strand){
            .rank = rank_of_unit(u, unit),
            .differs_from_twin = &u->ends[unit].differs_from_twin,
            .kin = x->kin[i],
            .n_kin = x->n_kin[i],
            .result_out = &u->results[unit],
        };
        u->log_unit[unit] = x->units[0];
    } else if (status != ME_OK) {
        u->ends[x->units[0]].diag = u->ends[unit].diag;
    }
    return status;
}

/** The unit and @p more that follow among the strands of its lead, but for those
 *  that were simulated. */
static me_status list_strands(me_units *u, int32_t unit, int32_t more,
                              strands *x)
{
    me_status status = add_strand(u, unit, x);
    int32_t next = u->twins[unit].next_strand;
    for (; status == ME_OK && more > 0 && next != 0; more--) {
        if (u->results[next] == NULL) {
            status = add_strand(u, next, x);
        }
        next = u->twins[next].next_strand;
    }
    return status;
}

/** Unless that was done.
 *
 *  @param more  strands of its lead, that follow, that are simulated with it */
static me_status simulate_unit(me_units *u, int32_t unit, int32_t more)
{
    me_unit_end *end = &u->ends[unit];
    if (u->results[unit] != NULL) {
        return end->status;
    }
    strands all = {.count = 0};
    me_simulation simulation = u->simulation;
    simulation.n_events = &end->n_events;
    simulation.differs_from_twin = &end->differs_from_twin;
    const double begin = me_log_cpu_seconds();
    end->status = list_strands(u, unit, more, &all);
    simulation.kin = all.kin[0];
    simulation.n_kin = all.n_kin[0];
    simulation.strands = all.others;
    simulation.n_strands = (uint32_t)all.count - 1;
    if (end->status == ME_OK) {
        end->status = make_log(u, unit);
    }
    if (end->status == ME_OK) {
        end->status =
            me_simulate_rank(&simulation, rank_of_unit(u, unit), u->logs[unit],
                             &end->diag, &u->results[unit]);
    }
    for (int32_t i = 0; i < all.count; i++) {
        me_free(all.kin[i]);
    }
    end->seconds = me_log_cpu_seconds() - begin;
    if (end->status != ME_OK) {
        note_failure(u, unit);
    } else {
        digest_log(u, unit);
    }
    return end->status;
}

/** A unit and those that may have its result, which otherwise run as well, but
 *  for those for whom one of the others stands.
 *
 *  @param more  see simulate_unit() */
static me_status simulate_twins(me_units *u, int32_t first, int32_t more)
{
    me_status status = simulate_unit(u, first, more);
    const bool differs = u->ends[first].differs_from_twin;
    for (int32_t i = first + 1; status == ME_OK && differs && i < u->count;
         i++) {
        if (u->twins[i].kin == i && u->twins[i].first != i &&
            u->twins[i].number == u->twins[first].number) {
            status = simulate_unit(u, i, 0);
        }
    }
    return status;
}

static int32_t strands_max(const me_units *u)
{
    return u->strands_max < 1 ? 1 : u->strands_max;
}

/** A unit and the strands of its lead that follow, as many as are simulated in one
 *  go; what cannot be a strand runs by itself. */
static void simulate_strands(me_units *u, int32_t unit)
{
    me_status status = ME_OK;
    int32_t next = unit;
    for (int32_t more = strands_max(u) - 1;
         status == ME_OK && more >= 0 &&
         (next != 0 || more == strands_max(u) - 1);
         more--) {
        status = simulate_twins(u, next, more);
        next = u->twins[next].next_strand;
    }
}

me_status me_units_run_one(me_units *units, int32_t unit, me_diag *diag)
{
    const me_status status = simulate_unit(units, unit, 0);
    if (status != ME_OK) {
        *diag = units->ends[unit].diag;
    }
    return status;
}

void me_units_done_fini(me_units_done *done)
{
    for (uint32_t i = 0; i < done->count; i++) {
        me_call_log_destroy(done->items[i].log);
        me_rank_result_destroy(done->items[i].result);
    }
    me_free(done->items);
    *done = (me_units_done){.count = 0};
}

void me_units_keep(me_units *units, me_units_done *done_out)
{
    me_units *u = units;
    uint32_t n = 0;
    for (int32_t i = 0; i < u->count; i++) {
        n += u->results[i] != NULL ? 1 : 0;
    }
    *done_out = (me_units_done){
        .items = me_alloc(n, sizeof *done_out->items, "units.done"),
        .n_units = u->count,
        .shares_results = u->shares_results};
    for (int32_t i = 0; done_out->items != NULL && i < u->count; i++) {
        if (u->results[i] != NULL) {
            done_out->items[done_out->count++] =
                (me_unit_done){i, u->logs[i], u->results[i], u->ends[i]};
            u->logs[i] = NULL;
            u->results[i] = NULL;
        }
    }
}

/** Would it be simulated first, or one that stands for it as its kin and that was
 *  simulated as well? */
static bool is_wanted(const me_units *u, const me_unit_done *done)
{
    const int32_t kin = u->twins[done->unit].kin;
    return me_units_is_mine(u, done->unit) && u->twins[kin].first == kin &&
           (done->log != NULL) == (kin == done->unit);
}

void me_units_take(me_units *units, me_units_done *done)
{
    me_units *u = units;
    const bool is_same =
        done->n_units == u->count && done->shares_results == u->shares_results;
    for (uint32_t i = 0; is_same && i < done->count; i++) {
        me_unit_done *x = &done->items[i];
        if (is_wanted(u, x)) {
            u->logs[x->unit] = x->log;
            u->results[x->unit] = x->result;
            u->ends[x->unit] = x->end;
            x->log = NULL;
            x->result = NULL;
        }
    }
    me_units_done_fini(done);
}

/** The units of several jobs, job after job. */
typedef struct tasks {
    me_units *const *jobs;
    me_progress progress;
} tasks;

/** Is it this process's to begin with, and not with another one's? */
static bool is_begun(const me_units *u, int32_t unit)
{
    return me_units_is_mine(u, unit) && u->twins[unit].first == unit &&
           u->twins[unit].kin == unit &&
           u->twins[unit].strand % strands_max(u) == 0;
}

static bool run_task(void *self, uint32_t task)
{
    tasks *t = self;
    me_units *const *job = t->jobs;
    while (task >= (uint32_t)(*job)->count) {
        task -= (uint32_t)(*job)->count;
        job++;
    }
    me_units *u = *job;
    const int32_t unit = (int32_t)task;
    if (is_begun(u, unit) && unit < atomic_load(&u->first_failed)) {
        simulate_strands(u, unit);
        me_progress_step(&t->progress);
    }
    return true;
}

void me_units_run(me_units *const *jobs, uint32_t n, uint32_t threads,
                  bool shows_progress)
{
    tasks t = {.jobs = jobs};
    uint32_t count = 0;
    uint32_t begun = 0;
    for (uint32_t i = 0; i < n; i++) {
        count += (uint32_t)jobs[i]->count;
        for (int32_t unit = 0; unit < jobs[i]->count; unit++) {
            begun += is_begun(jobs[i], unit) ? 1 : 0;
        }
    }
    me_progress_begin(&t.progress, shows_progress, "programs simulated", begun);
    me_workers_run(threads, count, run_task, &t);
    me_progress_end(&t.progress);
}

/** Programs that differ in memory alone make the same calls: keep them once, by
 *  the first unit. */
static void share_log(me_units *u, int32_t unit)
{
    me_call_log **own = &u->logs[unit];
    u->log_unit[unit] = unit;
    if (me_call_log_status(*own) != ME_OK) {
        return;
    }
    const int first =
        me_digest_map_get(&u->programs, me_call_log_digest(*own), unit);
    if (first == unit) {
        return;
    }
    u->log_unit[unit] = first;
    if (me_call_log_has_calls(*own)) { // it was simulated before the first
        me_call_log *held = *own;
        *own = u->logs[first];
        u->logs[first] = held;
    }
    me_call_log_destroy(*own);
    *own = NULL;
}

me_status me_units_remake_log(const me_units *units, int32_t unit,
                              me_diag *diag, me_call_log **log_out)
{
    me_simulation simulation = units->simulation;
    simulation.events_path = NULL; // written already
    me_call_log *log = NULL;
    me_rank_result *result = NULL;
    me_status status = me_call_log_create(&log);
    if (status != ME_OK) {
        return me_fail(diag, status, "no host memory for a log of calls");
    }
    status = me_simulate_rank(&simulation, rank_of_unit(units, unit), log, diag,
                              &result);
    me_rank_result_destroy(result);
    if (status != ME_OK) {
        me_call_log_destroy(log);
        return status;
    }
    *log_out = log;
    return ME_OK;
}

me_status me_units_join(me_units *units, me_diag *diag)
{
    me_units *u = units;
    me_digest_map_clear(&u->programs);
    for (int32_t i = 0; i < u->count; i++) {
        const me_unit_end *end = &u->ends[i];
        if (end->status != ME_OK) {
            *diag = end->diag;
            return end->status;
        }
        u->n_events += end->n_events;
        u->seconds += end->seconds;
        if (u->logs[i] != NULL) {
            share_log(u, i);
        } else if (me_units_is_mine(u, i)) {
            const me_twin *t = &u->twins[i];
            const int32_t stands = t->kin != i ? t->kin : t->first;
            u->log_unit[i] = u->log_unit[stands != i ? stands : u->log_unit[i]];
        }
    }
    return ME_OK;
}
