/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/trace_command.h"

#include "app/cli_flag.h"
#include "app/command_job.h"
#include "app/estimate_command.h"
#include "app/output.h"
#include "app/trace_size.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "base/workers.h"
#include "report/memory_snapshot.h"
#include "report/perfetto.h"
#include "run/agree.h"
#include "run/job_run.h"
#include "run/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct trace trace;

/** A format that is no report. */
typedef struct trace_format {
    const char *name;
    bool is_binary;
    bool needs_report; /**< all ranks are simulated first */
    me_status (*write)(trace *t, FILE *stream, me_diag *diag);
} trace_format;

/** The command, and what it is made of. */
struct trace {
    me_transport *transport;
    const me_cli *cli;
    const trace_format *format;
    me_run *run;
    FILE *stream; /**< while it is written */
    int32_t rank; /**< that is written */
    bool is_told; /**< how large it will be */
};

static int32_t rank_of(const me_cli *cli)
{
    return cli->rank < 0 ? 0 : cli->rank;
}

/** As a snapshot, to the point where the rank's report ends. */
static me_status read_snapshot(void *self, const me_traced *traced,
                               me_diag *diag)
{
    trace *t = self;
    const me_config *config = me_run_config(t->run);
    me_alloc_conf conf;
    me_status status = me_job_alloc_conf(config, diag, &conf);
    if (status != ME_OK) {
        return status;
    }
    const me_memory_snapshot snapshot = {
        .rank = rank_of(t->cli),
        .trace = traced->trace,
        .tree = traced->tree,
        .n_entries = traced->n_entries,
        .blocks = traced->blocks,
        .n_blocks = traced->n_blocks,
        .alloc_conf_text = config->device.alloc_conf,
        .conf = &conf,
    };
    status = me_trace_size_tell(
        t->cli->format,
        me_memory_snapshot_bytes(&snapshot, t->format->is_binary),
        "all iterations are in it, with each micro-batch; fewer of them (--set "
        "train.iterations=1, a smaller global batch) make it smaller",
        t->stream, diag);
    if (status != ME_OK) {
        return status;
    }
    return me_memory_snapshot_write(&snapshot, t->format->is_binary, t->stream,
                                    diag);
}

static me_status write_snapshot(trace *t, FILE *stream, me_diag *diag)
{
    const me_trace_reader reader = {
        .iteration = -2,
        .lists_blocks = true,
        .read = read_snapshot,
        .self = t,
    };
    t->stream = stream;
    return me_run_trace(t->run, rank_of(t->cli), &reader, diag);
}

/** Before the first of the programs that are written, whose sizes are alike. */
static me_status tell_size(trace *t, const me_perfetto_rank *rank,
                           me_diag *diag)
{
    const bool is_one = t->cli->rank >= 0;
    const int32_t n = is_one ? 1 : me_run_plan(t->run)->n_classes;
    if (t->is_told) {
        return ME_OK;
    }
    t->is_told = true;
    return me_trace_size_tell(
        t->cli->format, me_perfetto_bytes(rank) * (uint64_t)n,
        is_one ? "each micro-batch of iteration 1 is in it; a smaller global "
                 "batch makes it smaller"
               : "--rank R writes that one alone; a smaller global batch has "
                 "fewer micro-batches",
        t->stream, diag);
}

/** A rank that stands for all of its class, or for itself. */
static me_status read_timeline(void *self, const me_traced *traced,
                               me_diag *diag)
{
    trace *t = self;
    const me_plan *plan = me_run_plan(t->run);
    int32_t n_ranks = 1;
    if (t->cli->rank < 0) {
        (void)me_plan_members(plan, plan->class_of[t->rank], &n_ranks);
    }
    const me_perfetto_rank rank = {
        .rank = t->rank,
        .stage = me_plan_coordinates(plan, t->rank).at[ME_AXIS_PIPELINE],
        .n_like = n_ranks - 1,
        .iteration = ME_STEADY_ITERATION,
        .trace = traced->trace,
        .tree = traced->tree,
        .step = me_run_report(t->run)->time.step,
    };
    const me_status status = tell_size(t, &rank, diag);
    return status == ME_OK ? me_perfetto_append(&rank, t->stream, diag)
                           : status;
}

static me_status write_timeline(trace *t, FILE *stream, me_diag *diag)
{
    const me_trace_reader reader = {
        .iteration = ME_STEADY_ITERATION, .read = read_timeline, .self = t};
    const me_plan *plan = me_run_plan(t->run);
    const bool is_one = t->cli->rank >= 0;
    const int32_t n = is_one ? 1 : plan->n_classes;
    me_status status = ME_OK;
    me_progress progress = {.total = 0};
    t->stream = stream;
    me_progress_begin(&progress, me_shows_progress(t->transport),
                      "programs written", (uint32_t)n);
    me_perfetto_begin(stream);
    for (int32_t i = 0; status == ME_OK && ferror(stream) == 0 && i < n; i++) {
        t->rank = is_one ? t->cli->rank : me_plan_representative(plan, i);
        status = me_run_trace(t->run, t->rank, &reader, diag);
        me_progress_step(&progress);
    }
    me_progress_end(&progress);
    me_perfetto_end(stream);
    return status;
}

static const trace_format formats[] = {
    {"snapshot", true, false, write_snapshot},
    {"snapshot_json", false, false, write_snapshot},
    {"perfetto", false, true, write_timeline},
};

static const trace_format *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

bool me_is_trace(const me_cli *cli)
{
    return strcmp(cli->command, "estimate") == 0 &&
           me_cli_list_has(me_cli_rank_formats, cli->format);
}

/** Flags of a report that a trace has no use for. */
static me_status check_flags(const trace *t, me_diag *diag)
{
    const me_cli *cli = t->cli;
    const char *flag = cli->events != NULL       ? "--events"
                       : cli->dump != NULL       ? "--dump"
                       : cli->json_ranks != NULL ? "--json-ranks"
                       : cli->course             ? "--course"
                       : cli->require_fit        ? "--require-fit"
                       : cli->iteration >= 0     ? "--iteration"
                                                 : NULL;
    if (flag != NULL) {
        return me_fail(diag, ME_ERR_CONFIG, "%s: --format %s has no use for it",
                       flag, cli->format);
    }
    if (t->format->is_binary && cli->output == NULL && isatty(STDOUT_FILENO)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--format %s: is no text for a terminal: give --output "
                       "FILE.pickle",
                       cli->format);
    }
    return ME_OK;
}

static me_status read_command(trace *t, me_diag *diag)
{
    me_status status = check_flags(t, diag);
    if (status != ME_OK) {
        return status;
    }
    me_config *config = me_config_create();
    if (config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    status = me_job_read(t->cli, me_transport_size(t->transport), config, diag);
    if (status != ME_OK) {
        me_config_destroy(config);
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    const me_run_options options = {
        .strict = t->cli->strict,
        .threads = me_workers_share((uint32_t)t->cli->threads,
                                    (uint32_t)me_transport_size(t->transport)),
        .shows_progress = me_shows_progress(t->transport),
        .events_rank = rank_of(t->cli),
    };
    return me_run_create(t->transport, config, &options, diag, &t->run);
}

static me_status write_stdout(trace *t, me_diag *diag)
{
    me_status status = t->format->write(t, stdout, diag);
    errno = 0;
    if (status == ME_OK && (fflush(stdout) != 0 || ferror(stdout) != 0)) {
        status = me_fail(diag, ME_ERR_IO, "cannot write to stdout: %s",
                         me_stream_reason(stdout, errno));
    }
    return status;
}

static me_status write_output(trace *t, me_diag *diag)
{
    const char *path = t->cli->output;
    if (path == NULL || strcmp(path, "-") == 0) {
        return write_stdout(t, diag);
    }
    me_outfile *file = NULL;
    me_status status = me_outfile_create(path, diag, &file);
    if (status == ME_OK) {
        status = t->format->write(t, me_outfile_stream(file), diag);
    }
    if (status == ME_OK) {
        status = me_outfile_commit(file, diag);
    }
    me_outfile_destroy(file);
    return status;
}

int me_trace(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    trace t = {
        .transport = transport, .cli = cli, .format = find_format(cli->format)};
    if (t.format == NULL) {
        return me_exit_code(me_fail(diag, ME_ERR_CONFIG,
                                    "--format %s: is not known", cli->format));
    }
    me_status status =
        me_input_agree(transport, "the job", read_command(&t, diag), diag);
    if (status == ME_OK) {
        status = me_run_agree(t.run, diag);
    }
    if (status == ME_OK && t.format->needs_report) {
        status = me_run_simulate(t.run, diag);
    }
    if (status == ME_OK) {
        if (me_transport_rank(transport) == 0) {
            status = write_output(&t, diag);
        }
        status = me_transport_agree(transport, status, diag);
    }
    me_run_destroy(t.run);
    return me_exit_code(status);
}
