/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/compare_command.h"

#include "app/command_job.h"
#include "app/estimate_command.h"
#include "app/output.h"
#include "base/alloc.h"
#include "base/workers.h"
#include "report/seed_spread.h"
#include "run/agree.h"
#include "run/compare_run.h"

#include <stdio.h>
#include <string.h>

enum {
    SEED_TEXT = 40
};

/** One process's part of the command; what is NULL is not made yet. */
typedef struct command {
    me_transport *transport;
    const me_cli *cli;
    me_format format;
    me_compare_run *run;
    me_config *job;                         /**< read, not finished */
    char seeds[ME_CLI_MAX_SETS][SEED_TEXT]; /**< variants of --seeds */
    const char *seed_variants[ME_CLI_MAX_SETS];
} command;

static me_status agree(const command *c, me_status status, me_diag *diag)
{
    return me_transport_agree(c->transport, status, diag);
}

static me_compare_request request_of(const command *c)
{
    const me_cli *cli = c->cli;
    const bool has_seeds = cli->seeds > 0;
    return (me_compare_request){
        .schedules = cli->schedules,
        .n_schedules = (size_t)cli->n_schedules,
        .variants = has_seeds ? c->seed_variants : cli->variants,
        .n_variants = (size_t)(has_seeds ? cli->seeds - 1 : cli->n_variants),
        .durations = cli->durations,
        .strict = cli->strict,
        .no_fold = cli->no_fold,
        .shows_progress = me_shows_progress(c->transport),
        .threads = me_workers_share((uint32_t)cli->threads,
                                    (uint32_t)me_transport_size(c->transport)),
    };
}

/** The job as it is has seed 0 or what it says; the others count from there. */
static me_status make_seeds(command *c, me_diag *diag)
{
    const me_cli *cli = c->cli;
    const me_moe_options *m = &c->job->moe;
    if (cli->seeds < 2 || cli->seeds > ME_CLI_MAX_SETS) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--seeds %d: must be a number from 2 to %d",
                       (int)cli->seeds, (int)ME_CLI_MAX_SETS);
    }
    if (cli->n_variants > 0 || cli->n_schedules > 0 || cli->durations != NULL ||
        (c->format != ME_FORMAT_TEXT && c->format != ME_FORMAT_CSV)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--seeds goes without --variant, --schedule and "
                       "--durations, and makes text or csv");
    }
    if (strncmp(m->routing, "skewed:", strlen("skewed:")) != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--seeds needs a routing that has a seed: --set "
                       "moe.routing=skewed:0.5");
    }
    for (int32_t i = 0; i + 1 < cli->seeds; i++) {
        (void)snprintf(c->seeds[i], SEED_TEXT, "moe.routing_seed=%llu",
                       (unsigned long long)m->routing_seed +
                           (unsigned long long)i + 1);
        c->seed_variants[i] = c->seeds[i];
    }
    return ME_OK;
}

static me_status read_job(command *c, me_diag *diag)
{
    c->job = me_config_create();
    if (c->job == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    const me_status status = me_job_read_unfinished(c->cli, c->job, diag);
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

static me_status read_command(command *c, me_diag *diag)
{
    me_status status = me_format_read(c->cli->format, NULL, diag, &c->format);
    if (status == ME_OK && c->cli->seeds > 0) {
        status = read_job(c, diag);
        if (status == ME_OK && c->job != NULL) {
            status = make_seeds(c, diag);
        }
    }
    if (status == ME_OK && c->cli->durations != NULL &&
        c->format == ME_FORMAT_CSV) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--durations: --format must be text, json or html, "
                         "not csv");
    }
    if (status == ME_OK) {
        const me_compare_request request = request_of(c);
        status = me_compare_run_create(c->transport, &request, diag, &c->run);
    }
    return status == ME_OK && c->job == NULL ? read_job(c, diag) : status;
}

/** On process 0, which has the reports. */
static me_status print(const command *c, me_diag *diag)
{
    if (me_transport_rank(c->transport) != 0) {
        return ME_OK;
    }
    me_str text = {.columns = me_terminal_of(c->cli).width};
    const me_comparison *made = me_compare_run_comparison(c->run);
    me_status status =
        c->cli->seeds > 0
            ? me_seed_spread_append(made, c->format == ME_FORMAT_CSV, diag,
                                    &text)
            : me_compare_append(made, c->format, c->cli->course, diag, &text);
    status = me_transport_check(
        c->transport, me_alloc_check(c->cli->lost, status, diag), diag);
    if (status == ME_OK) {
        status = me_print_text(&text, c->cli->output, diag);
    }
    me_str_fini(&text);
    return status;
}

int me_compare(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    command c = {.transport = transport, .cli = cli};
    me_status status =
        me_input_agree(transport, "the job", read_command(&c, diag), diag);
    if (status == ME_OK) {
        status = me_config_agree(transport, c.job, diag);
    }
    if (status == ME_OK) {
        status = me_compare_run_all(c.run, c.job, diag);
    }
    if (status == ME_OK) {
        status = agree(&c, print(&c, diag), diag);
    }
    int code = me_exit_code(status);
    if (status == ME_OK && cli->require_fit &&
        me_transport_rank(transport) == 0) {
        code = me_compare_run_exit_code(c.run);
    }
    me_compare_run_destroy(c.run);
    me_config_destroy(c.job);
    return code;
}
