/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/estimate.h"

#include "app/groups.h"
#include "app/job.h"
#include "app/output.h"
#include "app/program.h"
#include "app/shards.h"
#include "app/simulate.h"
#include "base/alloc.h"
#include "base/log.h"
#include "collectives/check.h"
#include "collectives/launcher.h"
#include "config/options.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

int me_exit_code(me_status status)
{
    switch (status) {
    case ME_OK: return ME_EXIT_OK;
    case ME_ERR_CONFIG:
    case ME_ERR_SYNTAX:
    case ME_ERR_OVERFLOW:
    case ME_ERR_UNSUPPORTED:
    case ME_ERR_MISMATCH: return ME_EXIT_USAGE;
    case ME_ERR_NOMEM:
    case ME_ERR_IO:
    case ME_ERR_CAPACITY:
    case ME_ERR_MPI:
    case ME_ERR_INTERNAL: return ME_EXIT_INTERNAL;
    }
    return ME_EXIT_INTERNAL;
}

/** One process's part of an estimate; what is NULL is not made yet. */
typedef struct estimate {
    me_transport *transport;
    const me_cli *cli;
    me_config *config;
    me_plan *plan;
    me_groups *groups;
    me_job_card card;
    me_simulation simulation;
    me_format format;
    int32_t n_units;    /**< programs to simulate over all processes */
    me_call_log **logs; /**< of this process's units, else NULL */
    int32_t *log_unit;  /**< the unit whose log a unit shares, or itself */
    me_rank_result **results;
    me_report *report;
    uint64_t n_events;  /**< of this process's units */
    double cpu_seconds; /**< at the end of the stage before; for messages */
} estimate;

/** Seconds of CPU since the last stage ended; for messages alone. */
static double stage_seconds(estimate *s)
{
    const double before = s->cpu_seconds;
    s->cpu_seconds = me_log_cpu_seconds();
    return s->cpu_seconds - before;
}

/** What the command line asks for, and the job. */
static me_status read_command(estimate *s, me_diag *diag)
{
    const me_cli *cli = s->cli;
    me_status status =
        me_format_read(cli->format, cli->json_ranks, diag, &s->format);
    if (status != ME_OK) {
        return status;
    }
    s->config = me_config_create();
    if (s->config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    status = me_job_read(cli, me_transport_size(s->transport), s->config, diag);
    if (status == ME_OK) {
        status = me_job_card_make(s->config, diag, &s->card);
    }
    if (status == ME_OK && cli->strict) {
        status = me_config_check_strict(s->config, diag);
    }
    /* A job that cannot be read is the user's input, not our trouble. */
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

static me_status make_plan(estimate *s, me_diag *diag)
{
    me_status status = me_plan_create(s->config, true, diag, &s->plan);
    if (status == ME_OK) {
        const me_shard_classes shards = {.find = me_shards_find};
        status = me_plan_fold_shards(s->plan, &shards, diag);
    }
    if (status == ME_OK) {
        status = me_groups_create(s->plan, &s->groups);
    }
    if (status == ME_OK) {
        status = me_job_card_note_places(s->plan, &s->card, s->config, diag);
    }
    if (status != ME_OK) {
        return status;
    }
    const int32_t world = s->config->parallel.world_size;
    const bool is_rank_each = me_transport_size(s->transport) == world;
    const bool folds = !s->cli->no_fold && !is_rank_each;
    s->n_units = folds ? s->plan->n_classes : world;
    s->simulation = (me_simulation){
        .plan = s->plan,
        .card = &s->card,
        .memory_limit_bytes = s->config->device.memory_limit_bytes,
        .group_of = me_groups_find,
        .group_self = s->groups,
        .n_events = &s->n_events,
        .runs_all_rounds = s->cli->no_fold,
        .keeps_course = s->cli->course || s->format == ME_FORMAT_HTML,
        .events_path = s->cli->events,
        .events_rank = s->cli->rank < 0 ? 0 : s->cli->rank,
        .events_iteration = s->cli->iteration < 0 ? 1 : s->cli->iteration,
    };
    if (s->simulation.events_rank >= world) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--rank %d: the job has ranks 0 to %d", s->cli->rank,
                       world - 1);
    }
    const double seconds = stage_seconds(s);
    if (me_transport_rank(s->transport) == 0) {
        me_log(ME_LOG_INFO, "plan: %d ranks, %d programs, %.3f s", world,
               s->plan->n_classes, seconds);
    }
    return me_alloc_conf_parse(s->config->device.alloc_conf, diag,
                               &s->simulation.alloc_conf);
}

static bool folds(const estimate *s)
{
    return s->n_units != s->config->parallel.world_size ||
           s->n_units == s->plan->n_classes;
}

/** The rank that stands for a unit. With --events its own rank is asked for,
 *  so the class that holds it is represented by it. */
static int32_t rank_of_unit(const estimate *s, int32_t unit)
{
    if (!folds(s)) {
        return unit;
    }
    const int32_t asked = s->simulation.events_rank;
    return s->simulation.events_path != NULL && s->plan->class_of[asked] == unit
               ? asked
               : me_plan_representative(s->plan, unit);
}

static bool is_mine(const estimate *s, int32_t unit)
{
    const int size = me_transport_size(s->transport);
    return unit % size == me_transport_rank(s->transport);
}

/** Programs that differ in memory alone make the same calls: keep them once. */
static void share_log(estimate *s, int32_t unit)
{
    s->log_unit[unit] = unit;
    for (int32_t i = 0; i < unit; i++) {
        if (s->logs[i] != NULL &&
            me_call_log_is_same(s->logs[i], s->logs[unit])) {
            s->log_unit[unit] = i;
            me_call_log_destroy(s->logs[unit]);
            s->logs[unit] = NULL;
            return;
        }
    }
}

static me_status simulate(estimate *s, me_diag *diag)
{
    const size_t n = (size_t)s->n_units;
    s->logs = me_alloc(n, sizeof(me_call_log *), "estimate.logs");
    s->results = me_alloc(n, sizeof(me_rank_result *), "estimate.results");
    s->log_unit = me_alloc(n, sizeof(int32_t), "estimate.logs");
    if (s->logs == NULL || s->results == NULL || s->log_unit == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the ranks");
    }
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < s->n_units; i++) {
        if (!is_mine(s, i)) {
            continue;
        }
        status = me_call_log_create(&s->logs[i]);
        if (status == ME_OK) {
            status = me_simulate_rank(&s->simulation, rank_of_unit(s, i),
                                      s->logs[i], diag, &s->results[i]);
        }
        if (status == ME_OK) {
            share_log(s, i);
        }
    }
    const double seconds = stage_seconds(s);
    me_log(ME_LOG_INFO, "simulate: %llu events, %.3f s, %.1f ns an event",
           (unsigned long long)s->n_events, seconds,
           1e9 * seconds / (double)(s->n_events + (s->n_events == 0)));
    return status;
}

/** The ranks that this process answers for, unit by unit. */
typedef struct answers {
    int *ranks;
    int *log_of;
    me_rank_place *places;
    const me_call_log **logs;
    int *log_of_unit;
    me_report_part *parts;
    int n_ranks;
    int n_logs;
    int n_units;
} answers;

static void answers_fini(answers *a)
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
        .dp = c.at[ME_AXIS_DATA],
        .cp = c.at[ME_AXIS_CONTEXT],
        .ep = of_experts.at[ME_AXIS_EXPERT],
        .class_id = plan->class_of[rank],
    };
}

static void add_rank(const estimate *s, answers *a, int32_t rank, int log)
{
    a->ranks[a->n_ranks] = rank;
    a->log_of[a->n_ranks] = log;
    a->places[a->n_ranks] = place_of(s->plan, rank);
    a->n_ranks++;
}

static void add_unit(const estimate *s, answers *a, int32_t unit)
{
    const int before = a->n_ranks;
    if (s->logs[unit] != NULL) {
        a->log_of_unit[unit] = a->n_logs;
        a->logs[a->n_logs++] = s->logs[unit];
    }
    int32_t count = 1;
    const int32_t *members =
        folds(s) ? me_plan_members(s->plan, unit, &count) : &unit;
    for (int32_t i = 0; i < count; i++) {
        add_rank(s, a, members[i], a->log_of_unit[s->log_unit[unit]]);
    }
    a->parts[a->n_units] = (me_report_part){
        .result = s->results[unit],
        .places = a->places + before,
        .n_places = (uint32_t)(a->n_ranks - before),
    };
    a->n_units++;
}

static me_status make_answers(const estimate *s, me_diag *diag, answers *a)
{
    const size_t world = (size_t)s->config->parallel.world_size;
    const size_t units = (size_t)s->n_units;
    a->ranks = me_alloc(world, sizeof(int), "answers");
    a->log_of = me_alloc(world, sizeof(int), "answers");
    a->places = me_alloc(world, sizeof *a->places, "answers");
    a->logs = me_alloc(units, sizeof(me_call_log *), "answers");
    a->log_of_unit = me_alloc(units, sizeof(int), "answers");
    a->parts = me_alloc(units, sizeof *a->parts, "answers");
    if (a->ranks == NULL || a->log_of == NULL || a->places == NULL ||
        a->logs == NULL || a->log_of_unit == NULL || a->parts == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the report");
    }
    for (int32_t i = 0; i < s->n_units; i++) {
        if (is_mine(s, i)) {
            add_unit(s, a, i);
        }
    }
    return ME_OK;
}

/** Check that the ranks agree, and bring what they took to process 0. */
static me_status exchange(estimate *s, const answers *a, me_diag *diag)
{
    me_check_report checked = {.n_programs = 0};
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
                             },
                             diag, &checked);
    if (status != ME_OK) {
        return status;
    }
    me_log(ME_LOG_INFO, "check: %llu calls replayed, %.3f s",
           (unsigned long long)checked.replayed_calls, stage_seconds(s));
    static const char *const unchecked[] = {
        "too many collective calls to search for waits that never end"};
    return me_report_gather(s->transport,
                            &(me_report_input){
                                .config = s->config,
                                .version = ME_VERSION,
                                .world_size = s->config->parallel.world_size,
                                .capacity_bytes = s->card.card.total_bytes,
                                .assumptions = unchecked,
                                .n_assumptions = checked.is_replayed ? 0 : 1,
                                .rates = &s->card.rates,
                            },
                            a->parts, (uint32_t)a->n_units, diag, &s->report);
}

/** mpirun gives its processes a terminal of its own, wherever it writes. For
 *  NO_COLOR see no-color.org. */
static bool likes_color(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !me_launcher_is_present() &&
           (no_color == NULL || *no_color == '\0') && terminal != NULL &&
           strcmp(terminal, "dumb") != 0;
}

static me_status print(const estimate *s, me_diag *diag)
{
    if (s->report == NULL) {
        return ME_OK;
    }
    const bool is_check = strcmp(s->cli->command, "check") == 0;
    const me_format format =
        is_check && s->format == ME_FORMAT_TEXT ? ME_FORMAT_CHECK : s->format;
    return me_report_write(s->report, format, s->cli->output,
                           s->cli->output == NULL && likes_color(), diag);
}

static void estimate_fini(estimate *s)
{
    for (int32_t i = 0; i < s->n_units; i++) {
        if (s->logs != NULL) {
            me_call_log_destroy(s->logs[i]);
        }
        if (s->results != NULL) {
            me_rank_result_destroy(s->results[i]);
        }
    }
    me_free(s->logs);
    me_free(s->log_unit);
    me_free(s->results);
    me_report_destroy(s->report);
    me_groups_destroy(s->groups);
    me_plan_destroy(s->plan);
    me_config_destroy(s->config);
}

static bool stops_when_it_does_not_fit(const me_cli *cli)
{
    return cli->require_fit || strcmp(cli->command, "check") == 0;
}

static me_status dump_program(const estimate *s, me_diag *diag, me_str *text)
{
    const int32_t rank = s->cli->rank < 0 ? 0 : s->cli->rank;
    const me_pipeline p = me_plan_pipeline(s->plan, rank);
    me_actions *own = NULL;
    const me_actions *actions = NULL;
    me_status status = ME_OK;
    if (s->plan->order != NULL) {
        actions = &s->plan->order->ranks[p.rank];
    } else {
        status =
            me_actions_create(me_program_schedule(s->plan), &p, diag, &own);
        actions = own;
    }
    for (int32_t i = 0; status == ME_OK && i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        me_str_printf(text, "rank %d: %s microbatch %d chunk %d\n", rank,
                      me_action_letter(a->kind), a->microbatch, a->chunk);
    }
    me_actions_destroy(own);
    return status;
}

/** `--dump STAGE`: one stage as text, on process 0. */
static me_status dump(const estimate *s, me_diag *diag)
{
    me_str text = {0};
    const char *stage = s->cli->dump;
    const int32_t rank = s->cli->rank < 0 ? 0 : s->cli->rank;
    me_status status = ME_OK;
    if (s->format != ME_FORMAT_TEXT) {
        status = me_fail(diag, ME_ERR_CONFIG, "--format %s: --dump has text",
                         s->cli->format);
    } else if (strcmp(stage, "config") == 0) {
        me_config_dump(s->config, &text);
    } else if (strcmp(stage, "plan") == 0) {
        me_plan_dump(s->plan, &text);
    } else if (strcmp(stage, "program") == 0) {
        status = dump_program(s, diag, &text);
    } else if (strcmp(stage, "modules") == 0) {
        status = me_simulate_modules(s->plan, rank, diag, &text);
    } else {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--dump %s: config, plan, program and modules are "
                         "stages",
                         stage);
    }
    if (status == ME_OK && me_transport_rank(s->transport) == 0) {
        status = me_print_text(&text, s->cli->output, diag);
    }
    me_str_fini(&text);
    return status;
}

/** Everybody goes on, or everybody leaves with the same reason. */
static me_status agree(const estimate *s, me_status status, me_diag *diag)
{
    return me_transport_agree(s->transport, status, diag);
}

static me_status run(estimate *s, me_diag *diag)
{
    me_status status = agree(s, read_command(s, diag), diag);
    if (status == ME_OK) {
        status = agree(s, make_plan(s, diag), diag);
    }
    if (status != ME_OK || s->cli->dump != NULL) {
        return status == ME_OK ? agree(s, dump(s, diag), diag) : status;
    }
    status = agree(s, simulate(s, diag), diag);
    answers a = {.n_ranks = 0};
    if (status == ME_OK) {
        status = agree(s, make_answers(s, diag, &a), diag);
    }
    if (status == ME_OK) {
        status = exchange(s, &a, diag);
    }
    if (status == ME_OK) {
        me_log(ME_LOG_INFO, "gather: %.3f s", stage_seconds(s));
        status = agree(s, print(s, diag), diag);
        me_log(ME_LOG_INFO, "report: %.3f s", stage_seconds(s));
    }
    answers_fini(&a);
    return status;
}

int me_estimate(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    estimate s = {.transport = transport, .cli = cli};
    const me_status status = run(&s, diag);
    int code = me_exit_code(status);
    if (status == ME_OK && s.report != NULL &&
        stops_when_it_does_not_fit(cli) &&
        !me_verdict_lets_go(&s.report->verdict)) {
        code = ME_EXIT_DOES_NOT_FIT;
    }
    estimate_fini(&s);
    return code;
}
