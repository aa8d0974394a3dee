/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/compare_command.h"

#include "app/command_job.h"
#include "app/estimate_command.h"
#include "app/output.h"
#include "base/workers.h"
#include "run/agree.h"
#include "run/compare_run.h"

/** One process's part of the command; what is NULL is not made yet. */
typedef struct command {
    me_transport *transport;
    const me_cli *cli;
    me_format format;
    me_compare_run *run;
    me_config *job; /**< read, not finished */
} command;

static me_status agree(const command *c, me_status status, me_diag *diag)
{
    return me_transport_agree(c->transport, status, diag);
}

static me_compare_request request_of(const command *c)
{
    const me_cli *cli = c->cli;
    return (me_compare_request){
        .schedules = cli->schedules,
        .n_schedules = (size_t)cli->n_schedules,
        .variants = cli->variants,
        .n_variants = (size_t)cli->n_variants,
        .durations = cli->durations,
        .strict = cli->strict,
        .no_fold = cli->no_fold,
        .threads = me_workers_share((uint32_t)cli->threads,
                                    (uint32_t)me_transport_size(c->transport)),
    };
}

static me_status read_command(command *c, me_diag *diag)
{
    me_status status = me_format_read(c->cli->format, NULL, diag, &c->format);
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
    if (status != ME_OK) {
        return status;
    }
    c->job = me_config_create();
    if (c->job == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    status = me_job_read_unfinished(c->cli, c->job, diag);
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

/** On process 0, which has the reports. */
static me_status print(const command *c, me_diag *diag)
{
    if (me_transport_rank(c->transport) != 0) {
        return ME_OK;
    }
    me_str text = {0};
    me_status status =
        me_compare_append(me_compare_run_comparison(c->run), c->format,
                          c->cli->course, diag, &text);
    status = me_transport_check(c->transport, status, diag);
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
