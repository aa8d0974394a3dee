/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/track_command.h"

#include "app/command_job.h"
#include "app/estimate_command.h"
#include "app/output.h"
#include "base/alloc.h"
#include "base/parse.h"
#include "report/op_series_report.h"
#include "run/agree.h"
#include "run/job_run.h"
#include "run/simulate.h"
#include "run/tool.h"

/** The command, and what it is made of. */
typedef struct command {
    me_transport *transport;
    const me_cli *cli;
    me_tool_format format;
    me_tool tool;
    me_run *run;
    me_str text;
    me_op_series loaded; /**< of --load */
} command;

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    command *c = self;
    return me_tool_begin(&c->tool, c->run, e, diag);
}

static me_status end(void *self, me_diag *diag)
{
    command *c = self;
    return me_tool_append(&c->tool, &c->format, diag, &c->text);
}

/** What the flags ask for, and whether the command has it. */
static me_status read_flags(command *c, me_diag *diag)
{
    const me_cli *cli = c->cli;
    me_tool_options *options = &c->tool.options;
    *options = (me_tool_options){
        .as_memtracker = cli->as_memtracker,
        .is_input_inside = cli->input_inside,
        .budget = -1,
        .shards = (uint32_t)cli->shards,
        .iteration = cli->iteration < 0 ? ME_STEADY_ITERATION : cli->iteration,
    };
    c->format = (me_tool_format){
        .name = cli->format,
        .mem.depth = cli->depth == 0 ? ME_TOOL_DEPTH : (uint32_t)cli->depth,
        .mem.tabulates = cli->tabulate,
        .top = cli->top == 0 ? ME_TOOL_TOP : (uint32_t)cli->top,
    };
    me_status status = me_tool_find(cli->tool == NULL ? "mem" : cli->tool, diag,
                                    &options->kind);
    if (status == ME_OK) {
        status = me_tool_check_format(options->kind, cli->format, diag);
    }
    if (status == ME_OK && cli->budget != NULL &&
        (me_parse_double(cli->budget, &options->budget) != ME_OK ||
         options->budget < 0)) {
        status =
            me_fail(diag, ME_ERR_CONFIG,
                    "--budget %s: must be a number, 0 at least", cli->budget);
    }
    return status == ME_OK
               ? me_mem_units_find(cli->units == NULL ? "B" : cli->units, diag,
                                   &c->format.mem)
               : status;
}

static int32_t rank_of(const me_cli *cli)
{
    return cli->rank < 0 ? 0 : cli->rank;
}

static me_status read_job(command *c, me_diag *diag)
{
    me_status status = read_flags(c, diag);
    if (status != ME_OK) {
        return status;
    }
    me_config *config = me_config_create();
    if (config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    status = me_job_read(c->cli, me_transport_size(c->transport), config, diag);
    if (status != ME_OK) {
        me_config_destroy(config);
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    const me_run_options options = {.strict = c->cli->strict};
    status = me_run_create(c->transport, config, &options, diag, &c->run);
    return status == ME_OK
               ? me_tool_check(&c->tool.options, me_run_config(c->run),
                               rank_of(c->cli), diag)
               : status;
}

/** Text that is whole goes out. */
static me_status print(const command *c, me_status status, me_diag *diag)
{
    status = me_transport_check(
        c->transport, me_alloc_check(c->cli->lost, status, diag), diag);
    return status == ME_OK ? me_print_text(&c->text, c->cli->output, diag)
                           : status;
}

static me_status simulate(command *c, me_diag *diag)
{
    const me_watcher watcher = {.begin = begin, .end = end, .self = c};
    me_status status =
        me_simulate_watched(me_run_plan(c->run), me_run_card(c->run),
                            rank_of(c->cli), &watcher, diag);
    if (status == ME_OK && me_str_status(&c->text) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the text");
    }
    return print(c, status, diag);
}

/** A series that was saved: no job is needed. */
static me_status show_loaded(command *c, me_diag *diag)
{
    me_status status = read_flags(c, diag);
    if (status == ME_OK) {
        status = me_op_series_load(c->cli->load, diag, &c->loaded);
    }
    if (status == ME_OK) {
        status = me_tool_append_series(&c->loaded, &c->format, diag, &c->text);
    }
    if (status == ME_ERR_IO) {
        return ME_ERR_CONFIG; // there is no such file
    }
    return print(c, status, diag);
}

int me_track(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    command c = {.transport = transport, .cli = cli};
    me_status status = ME_OK;
    if (cli->load == NULL) {
        status = me_input_agree(transport, "the job", read_job(&c, diag), diag);
        if (status == ME_OK) {
            status = me_run_agree(c.run, diag);
        }
    }
    if (status == ME_OK && me_transport_rank(transport) == 0) {
        status = cli->load == NULL ? simulate(&c, diag) : show_loaded(&c, diag);
    }
    status = me_transport_agree(transport, status, diag);
    me_tool_fini(&c.tool);
    me_op_series_fini(&c.loaded);
    me_str_fini(&c.text);
    me_run_destroy(c.run);
    return me_exit_code(status);
}
