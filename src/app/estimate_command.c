/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/estimate_command.h"

#include "app/command_job.h"
#include "app/output.h"
#include "base/alloc.h"
#include "base/workers.h"
#include "config/options.h"
#include "report/job_report.h"
#include "run/agree.h"
#include "run/fit_run.h"
#include "run/job_run.h"
#include "run/program.h"
#include "run/simulate.h"

#include <stdio.h>
#include <string.h>

/** One process's part of an estimate; what is NULL is not made yet. */
typedef struct estimate {
    me_transport *transport;
    const me_cli *cli;
    me_format format;
    me_run *run;
    me_config *job; /**< as read, not finished, for who varies it; or NULL */
    me_fit_run *fit;
} estimate;

static bool is_command(const me_cli *cli, const char *name)
{
    return strcmp(cli->command, name) == 0;
}

/** Is it said what would make the job fit? CSV has no place for it. */
static bool searches_fit(const estimate *s)
{
    return (is_command(s->cli, "check") || is_command(s->cli, "fit")) &&
           s->format != ME_FORMAT_CSV;
}

static uint32_t threads_of(const estimate *s)
{
    return me_workers_share((uint32_t)s->cli->threads,
                            (uint32_t)me_transport_size(s->transport));
}

/** What the command line asks for, the job and its plan. */
static me_status read_command(estimate *s, me_diag *diag)
{
    const me_cli *cli = s->cli;
    me_status status =
        me_format_read(cli->format, cli->json_ranks, diag, &s->format);
    if (status != ME_OK) {
        return status;
    }
    me_config *config = me_config_create();
    if (config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    status = me_job_read_unfinished(cli, config, diag);
    if (status == ME_OK && searches_fit(s)) {
        s->job = me_config_clone(config);
        status = s->job == NULL
                     ? me_fail(diag, ME_ERR_NOMEM, "no host memory for the job")
                     : ME_OK;
    }
    if (status == ME_OK) {
        status =
            me_job_finish(cli, me_transport_size(s->transport), config, diag);
    }
    if (status != ME_OK) {
        me_config_destroy(config);
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    const me_run_options options = {
        .strict = cli->strict,
        .no_fold = cli->no_fold,
        .keeps_course = cli->course || s->format == ME_FORMAT_HTML,
        .threads = threads_of(s),
        .shows_progress = me_shows_progress(s->transport),
        .events_path = cli->events,
        .events_rank = cli->rank < 0 ? 0 : cli->rank,
        .events_iteration =
            cli->iteration < 0 ? ME_STEADY_ITERATION : cli->iteration,
    };
    return me_run_create(s->transport, config, &options, diag, &s->run);
}

/** The text that a command prints. */
static me_format text_format(const me_cli *cli)
{
    const bool shows_ranks =
        cli->ranks != NULL && strcmp(cli->ranks, "all") == 0;
    return is_command(cli, "check") ? ME_FORMAT_CHECK
           : is_command(cli, "fit") ? ME_FORMAT_FIT
           : cli->details           ? ME_FORMAT_TEXT
           : shows_ranks            ? ME_FORMAT_BRIEF_RANKS
                                    : ME_FORMAT_BRIEF;
}

enum {
    JSON_RANKS_MAX = 1024 /**< that each have a record unless it is asked for */
};

/** The format, of which the command and the number of ranks are a part. */
static me_format format_of(const estimate *s, int32_t world_size)
{
    if (s->format == ME_FORMAT_TEXT) {
        return text_format(s->cli);
    }
    return s->format == ME_FORMAT_JSON && s->cli->json_ranks == NULL &&
                   world_size > JSON_RANKS_MAX
               ? ME_FORMAT_JSON_CLASSES
               : s->format;
}

static me_status print(const estimate *s, me_diag *diag)
{
    const me_report *report = me_run_report(s->run);
    if (report == NULL) {
        return ME_OK;
    }
    const me_terminal terminal = me_terminal_of(s->cli);
    const me_status status = me_alloc_check(s->cli->lost, ME_OK, diag);
    return status == ME_OK
               ? me_report_write(report, format_of(s, report->world_size),
                                 s->cli->output, &terminal, diag)
               : status;
}

static bool stops_when_it_does_not_fit(const me_cli *cli)
{
    return cli->require_fit || is_command(cli, "check") ||
           is_command(cli, "fit");
}

static me_status dump_program(const estimate *s, me_diag *diag, me_str *text)
{
    const int32_t rank = s->cli->rank < 0 ? 0 : s->cli->rank;
    const me_plan *plan = me_run_plan(s->run);
    const me_pipeline p = me_plan_pipeline(plan, rank);
    me_actions *own = NULL;
    const me_actions *actions = NULL;
    me_status status = ME_OK;
    if (plan->order != NULL) {
        actions = &plan->order->ranks[p.rank];
    } else {
        status = me_actions_create(me_program_schedule(plan), &p, diag, &own);
        actions = own;
    }
    for (int32_t i = 0; status == ME_OK && i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        me_str_printf(text, "rank %d: %s", rank, me_action_letter(a->kind));
        if (!me_action_is_of_parameters(a->kind)) {
            me_str_printf(text, " microbatch %d", a->microbatch);
        }
        me_str_printf(text, " chunk %d\n", a->chunk);
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
    const bool is_of_all =
        strcmp(stage, "config") == 0 || strcmp(stage, "plan") == 0;
    if (s->format != ME_FORMAT_TEXT) {
        status = me_fail(diag, ME_ERR_CONFIG, "--format %s: --dump has text",
                         s->cli->format);
    } else if (is_of_all && s->cli->rank >= 0) {
        status =
            me_fail(diag, ME_ERR_CONFIG, "--rank %d: --dump %s is of all ranks",
                    s->cli->rank, stage);
    } else if (strcmp(stage, "config") == 0) {
        me_config_dump(me_run_config(s->run), &text);
    } else if (strcmp(stage, "plan") == 0) {
        me_plan_dump(me_run_plan(s->run), &text);
    } else if (strcmp(stage, "program") == 0) {
        status = dump_program(s, diag, &text);
    } else if (strcmp(stage, "modules") == 0) {
        status = me_simulate_modules(me_run_plan(s->run), rank, diag, &text);
    } else {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--dump %s: config, plan, program and modules are "
                         "stages",
                         stage);
    }
    status = me_transport_check(
        s->transport, me_alloc_check(s->cli->lost, status, diag), diag);
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

static me_status search_fit(estimate *s, me_diag *diag)
{
    const me_fit_request request = {.strict = s->cli->strict,
                                    .is_quick = is_command(s->cli, "check"),
                                    .shows_progress =
                                        me_shows_progress(s->transport),
                                    .threads = threads_of(s)};
    const me_status status = me_fit_run_create(s->transport, s->job, s->run,
                                               &request, diag, &s->fit);
    me_run_set_fit(s->run, me_fit_run_result(s->fit));
    return status;
}

static me_status run(estimate *s, me_diag *diag)
{
    me_status status =
        me_input_agree(s->transport, "the job", read_command(s, diag), diag);
    if (status == ME_OK) {
        status = me_run_agree(s->run, diag);
    }
    if (status != ME_OK || s->cli->dump != NULL) {
        return status == ME_OK ? agree(s, dump(s, diag), diag) : status;
    }
    status = me_run_simulate(s->run, diag);
    if (status == ME_OK && searches_fit(s)) {
        status = search_fit(s, diag);
    }
    return status == ME_OK ? agree(s, print(s, diag), diag) : status;
}

int me_estimate(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    estimate s = {.transport = transport, .cli = cli};
    const me_status status = run(&s, diag);
    int code = me_exit_code(status);
    const me_report *report = status == ME_OK ? me_run_report(s.run) : NULL;
    if (report != NULL && stops_when_it_does_not_fit(cli)) {
        code = me_exit_code_of(&report->verdict);
    }
    me_run_destroy(s.run);
    me_fit_run_destroy(s.fit);
    me_config_destroy(s.job);
    return code;
}
