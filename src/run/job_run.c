/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/job_run.h"

#include "base/alloc.h"
#include "base/log.h"
#include "collectives/check.h"
#include "config/framework.h"
#include "report/verdict.h"
#include "run/agree.h"
#include "run/group_links.h"
#include "run/groups.h"
#include "run/job_card.h"
#include "run/program.h"
#include "run/units.h"
#include "tensor/strand.h"

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

/** One process's part of a job; what is NULL is not made yet. */
struct me_run {
    me_transport *transport;
    me_run_options options;
    me_config *config;
    me_plan *plan;
    me_groups *groups;
    me_job_card card;
    me_link_uses links;
    me_units units;
    me_report *report;
    double cpu_seconds; /**< at the end of the stage before; for messages */
};

/** Seconds of CPU of this thread since the last stage ended; for messages
 *  alone. */
static double stage_seconds(me_run *s)
{
    const double before = s->cpu_seconds;
    s->cpu_seconds = me_log_cpu_seconds();
    return s->cpu_seconds - before;
}

/** What the allocator may hold, of all that says so. */
static me_status set_limit(me_run *s, me_diag *diag)
{
    me_alloc_conf *conf = &s->units.simulation.alloc_conf;
    const uint64_t limit = s->config->device.memory_limit_bytes;
    me_status status = me_job_alloc_conf(s->config, diag, conf);
    if (status == ME_OK && limit != 0 &&
        conf->per_process_memory_fraction >= 0.0) {
        status = me_config_assume(s->config, diag,
                                  "the memory limit counts, and not "
                                  "per_process_memory_fraction");
    }
    s->units.simulation.memory_limit_bytes =
        me_alloc_conf_limit_bytes(conf, limit, s->card.card.total_bytes);
    return status;
}

/** What the job's groups cross of the machine. */
static me_status survey_links(me_run *s, me_diag *diag)
{
    const me_status status =
        me_links_survey(s->plan, &s->card.machine, diag, &s->links);
    return status == ME_OK ? me_links_note(&s->links, s->config, diag) : status;
}

/** How many programs are told in one go, so that each of several workers has some
 *  of its own. */
static int32_t strands_of(int workers)
{
    return workers <= 1                ? ME_STRANDS_MAX
           : workers >= ME_STRANDS_MAX ? 1
                                       : ME_STRANDS_MAX / workers;
}

static me_status make_plan(me_run *s, me_diag *diag)
{
    me_status status = me_plan_create(s->config, true, diag, &s->plan);
    if (status == ME_OK) {
        const me_shard_classes shards = {.find = me_program_shard_classes};
        status = me_plan_fold_shards(s->plan, &shards, diag);
    }
    if (status == ME_OK && me_groups_create(s->plan, &s->groups) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the groups");
    }
    if (status == ME_OK) {
        status = me_job_card_note_places(s->plan, &s->card, s->config, diag);
    }
    if (status == ME_OK && s->card.has_machine) {
        status = survey_links(s, diag);
    }
    if (status != ME_OK) {
        return status;
    }
    const int32_t world = s->config->parallel.world_size;
    const bool is_rank_each = me_transport_size(s->transport) == world;
    const bool folds = !s->options.no_fold && !is_rank_each;
    s->units = (me_units){
        .simulation = {.plan = s->plan,
                       .card = &s->card,
                       .group_of = me_groups_find,
                       .group_self = s->groups,
                       .runs_all_rounds = s->options.no_fold,
                       .keeps_course = s->options.keeps_course,
                       .keeps_totals = s->options.keeps_totals,
                       .strands_max =
                           strands_of(me_transport_size(s->transport)),
                       .events_path = s->options.events_path,
                       .events_rank = s->options.events_rank,
                       .events_iteration = s->options.events_iteration},
        .count = folds ? s->plan->n_classes : world,
        .are_classes = folds || s->plan->n_classes == world,
        .shares_results = folds,
        .strands_max = strands_of(me_transport_size(s->transport) *
                                  (int)s->options.threads),
        .process = me_transport_rank(s->transport),
        .n_processes = me_transport_size(s->transport),
    };
    if (s->options.events_rank >= world) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--rank %d: the job has ranks 0 to %d",
                       s->options.events_rank, world - 1);
    }
    status = set_limit(s, diag);
    if (status == ME_OK) {
        status = me_units_init(&s->units, diag);
    }
    if (status == ME_OK && s->options.done != NULL) {
        me_units_take(&s->units, s->options.done);
    }
    return status;
}

/** The ranks of this process, unit by unit. */
typedef struct rank_share {
    int *ranks;
    int *log_of;
    me_rank_place *places;
    const me_call_log **logs;
    int *log_of_unit;
    me_report_part *parts;
    int n_ranks;
    int n_logs;
    int n_units;
} rank_share;

static void share_fini(rank_share *a)
{
    me_free(a->ranks);
    me_free(a->log_of);
    me_free(a->places);
    me_free(a->logs);
    me_free(a->log_of_unit);
    me_free(a->parts);
}

static me_rank_place place_of(const me_plan *plan, int32_t rank)
{
    const me_coordinates c = me_plan_coordinates(plan, rank);
    const me_coordinates of_experts =
        me_grid_coordinates(&plan->grid, ME_GRID_EXPERT, rank);
    return (me_rank_place){
        .rank = rank,
        .tp = c.at[ME_AXIS_TENSOR],
        .pp = c.at[ME_AXIS_PIPELINE],
        .dp = me_grid_data_rank(&plan->grid, ME_GRID_DENSE, &c),
        .cp = c.at[ME_AXIS_CONTEXT],
        .ep = of_experts.at[ME_AXIS_EXPERT],
        .class_id = plan->class_of[rank],
    };
}

static void add_rank(const me_run *s, rank_share *a, int32_t rank, int log)
{
    a->ranks[a->n_ranks] = rank;
    a->log_of[a->n_ranks] = log;
    a->places[a->n_ranks] = place_of(s->plan, rank);
    a->n_ranks++;
}

static void add_unit(const me_run *s, rank_share *a, int32_t unit)
{
    const me_units *u = &s->units;
    const int before = a->n_ranks;
    if (u->logs[unit] != NULL) {
        a->log_of_unit[unit] = a->n_logs;
        a->logs[a->n_logs++] = u->logs[unit];
    }
    int32_t count = 1;
    const int32_t *members =
        u->are_classes ? me_plan_members(s->plan, unit, &count) : &unit;
    for (int32_t i = 0; i < count; i++) {
        add_rank(s, a, members[i], a->log_of_unit[u->log_unit[unit]]);
    }
    a->parts[a->n_units] = (me_report_part){
        .result = me_units_result(u, unit),
        .lent = me_units_result(u, unit),
        .places = a->places + before,
        .n_places = (uint32_t)(a->n_ranks - before),
    };
    a->n_units++;
}

static me_status make_share(const me_run *s, me_diag *diag, rank_share *a)
{
    const size_t world = (size_t)s->config->parallel.world_size;
    const size_t units = (size_t)s->units.count;
    a->ranks = me_alloc(world, sizeof(int), "share");
    a->log_of = me_alloc(world, sizeof(int), "share");
    a->places = me_alloc(world, sizeof *a->places, "share");
    a->logs = me_alloc(units, sizeof(me_call_log *), "share");
    a->log_of_unit = me_alloc(units, sizeof(int), "share");
    a->parts = me_alloc(units, sizeof *a->parts, "share");
    if (a->ranks == NULL || a->log_of == NULL || a->places == NULL ||
        a->logs == NULL || a->log_of_unit == NULL || a->parts == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the report");
    }
    for (int32_t i = 0; i < s->units.count; i++) {
        if (me_units_is_mine(&s->units, i)) {
            add_unit(s, a, i);
        }
    }
    return ME_OK;
}

/** Whose calls are made anew, me_check_part.remake. */
typedef struct remake {
    const me_units *units;
    const rank_share *share;
} remake;

static me_status remake_log(void *self, int log, me_diag *diag,
                            me_call_log **log_out)
{
    const remake *r = self;
    int32_t unit = 0;
    while (r->units->logs[unit] == NULL || r->share->log_of_unit[unit] != log) {
        unit++;
    }
    return me_units_remake_log(r->units, unit, diag, log_out);
}

/** Check that the ranks agree, and bring what they took to process 0. */
static me_status exchange(me_run *s, const rank_share *a, me_diag *diag)
{
    me_check_report checked = {.n_programs = 0};
    remake again = {.units = &s->units, .share = a};
    const me_status status =
        me_collectives_check(s->transport,
                             &(me_check_part){
                                 .world_size = s->config->parallel.world_size,
                                 .logs = a->logs,
                                 .n_logs = a->n_logs,
                                 .ranks = a->ranks,
                                 .log_of = a->log_of,
                                 .n_ranks = a->n_ranks,
                                 .group_of = me_groups_find,
                                 .self = s->groups,
                                 .remake = remake_log,
                                 .remake_self = &again,
                             },
                             diag, &checked);
    if (status != ME_OK) {
        return status;
    }
    me_log(ME_LOG_INFO, "check: %llu calls replayed, %.3f s",
           (unsigned long long)checked.replayed_calls, stage_seconds(s));
    const char *const unchecked = me_check_unchecked(&checked);
    return me_report_gather(
        s->transport,
        &(me_report_input){
            .config = s->config,
            .version = ME_VERSION,
            .world_size = s->config->parallel.world_size,
            .capacity_bytes = s->card.card.total_bytes,
            .limit_bytes = s->units.simulation.memory_limit_bytes,
            .assumptions = &unchecked,
            .n_assumptions = unchecked != NULL ? 1 : 0,
            .rates = &s->card.rates,
            .links = &s->links,
        },
        a->parts, (uint32_t)a->n_units, diag, &s->report);
}

void me_run_destroy(me_run *run)
{
    me_run *s = run;
    if (s == NULL) {
        return;
    }
    me_units_fini(&s->units);
    me_report_destroy(s->report);
    me_links_fini(&s->links);
    me_groups_destroy(s->groups);
    me_plan_destroy(s->plan);
    me_config_destroy(s->config);
    me_free(s);
}

/** Everybody goes on, or everybody leaves with the same reason. */
static me_status agree(const me_run *s, me_status status, me_diag *diag)
{
    return me_transport_agree(s->transport, status, diag);
}

me_status me_run_create(me_transport *transport, me_config *config,
                        const me_run_options *options, me_diag *diag,
                        me_run **run_out)
{
    me_run *s = me_alloc(1, sizeof *s, "run");
    if (s == NULL) {
        me_config_destroy(config);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    s->transport = transport;
    s->options = *options;
    s->config = config;
    s->cpu_seconds = me_log_cpu_seconds();
    me_status status = me_job_card_make(config, diag, &s->card);
    if (status == ME_OK && options->strict) {
        status = me_config_check_strict(config, diag);
    }
    if (status == ME_OK) {
        status = make_plan(s, diag);
    }
    status = me_transport_check(transport, status, diag);
    // A job that cannot be read is the user's input, not our trouble.
    if (status != ME_OK) {
        me_run_destroy(s);
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    const double seconds = stage_seconds(s);
    if (me_transport_rank(transport) == 0) {
        me_log(ME_LOG_INFO, "plan: %d ranks, %d programs, %.3f s",
               config->parallel.world_size, s->plan->n_classes, seconds);
    }
    *run_out = s;
    return ME_OK;
}

me_status me_run_agree(const me_run *run, me_diag *diag)
{
    return me_plan_agree(run->transport, run->plan, &run->card, diag);
}

const me_job_card *me_run_card(const me_run *run)
{
    return &run->card;
}

const me_plan *me_run_plan(const me_run *run)
{
    return run->plan;
}

const me_config *me_run_config(const me_run *run)
{
    return run->config;
}

const me_report *me_run_report(const me_run *run)
{
    return run->report;
}

void me_run_set_fit(me_run *run, const struct me_fit *fit)
{
    if (run->report != NULL) {
        run->report->fit = fit;
    }
}

me_status me_runs_simulate(me_run *const *runs, uint32_t n, me_diag *diag)
{
    me_units **jobs = me_alloc(n, sizeof(me_units *), "run.jobs");
    if (jobs == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the ranks");
    }
    for (uint32_t i = 0; i < n; i++) {
        jobs[i] = &runs[i]->units;
    }
    const me_run_options *options = n == 0 ? NULL : &runs[0]->options;
    me_units_run(jobs, n, options == NULL ? 1 : options->threads,
                 options != NULL && options->shows_progress);
    me_free(jobs);
    return ME_OK;
}

/** What the units of this process did, for messages. */
static me_status join_units(me_run *s, me_diag *diag)
{
    const me_status status = me_units_join(&s->units, diag);
    const uint64_t n = s->units.n_events;
    me_log(ME_LOG_INFO, "simulate: %llu events, %.3f s, %.1f ns an event",
           (unsigned long long)n, s->units.seconds,
           1e9 * s->units.seconds / (double)(n + (n == 0)));
    return status;
}

me_status me_run_gather(me_run *run, me_diag *diag)
{
    run->cpu_seconds = me_log_cpu_seconds();
    me_status status = agree(run, join_units(run, diag), diag);
    rank_share a = {.n_ranks = 0};
    if (status == ME_OK) {
        status = agree(run, make_share(run, diag, &a), diag);
    }
    if (status == ME_OK) {
        status = exchange(run, &a, diag);
    }
    if (status == ME_OK) {
        me_log(ME_LOG_INFO, "gather: %.3f s", stage_seconds(run));
    }
    share_fini(&a);
    return agree(run, status, diag);
}

me_status me_run_probe(me_run *run, const int32_t *ranks, int32_t n_ranks,
                       me_diag *diag, me_verdict *verdict_out)
{
    me_units *u = &run->units;
    me_rank_result *results[ME_PROBE_RANKS] = {NULL};
    me_report_rank places[ME_PROBE_RANKS] = {{.result = 0}};
    for (int32_t i = 0; i < n_ranks; i++) {
        const int32_t unit =
            u->are_classes ? run->plan->class_of[ranks[i]] : ranks[i];
        const me_status status = me_units_run_one(u, unit, diag);
        if (status != ME_OK) {
            return status;
        }
        results[i] = u->results[unit];
        places[i] = (me_report_rank){.place = place_of(run->plan, ranks[i]),
                                     .result = (uint32_t)i};
    }
    const me_report report = {.config = run->config,
                              .world_size = n_ranks,
                              .results = results,
                              .n_results = (uint32_t)n_ranks,
                              .ranks = places,
                              .limit_bytes = u->simulation.memory_limit_bytes};
    *verdict_out = me_verdict_judge(&report, run->card.card.total_bytes);
    return ME_OK;
}

me_status me_run_screen(me_run *run, const me_screen_watcher *watcher,
                        me_diag *diag, me_run_sight *sight_out)
{
    return me_units_screen(&run->units, watcher, diag, sight_out);
}

me_status me_run_simulate(me_run *run, me_diag *diag)
{
    const me_status status = agree(run, me_runs_simulate(&run, 1, diag), diag);
    return status == ME_OK ? me_run_gather(run, diag) : status;
}

me_status me_run_trace(const me_run *run, int32_t rank,
                       const me_trace_reader *reader, me_diag *diag)
{
    return me_simulate_traced(&run->units.simulation, rank, reader, diag);
}
