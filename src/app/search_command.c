/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/search_command.h"

#include "app/command_job.h"
#include "app/output.h"
#include "base/alloc.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/workers.h"
#include "run/agree.h"
#include "run/exit_code.h"
#include "search/search_report.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 128 /* of an option */
};

/** One process's part of the command; what is NULL is not made yet. */
typedef struct command {
    me_transport *transport;
    const me_cli *cli;
    me_format format;
    double budget_seconds; /**< 0: none */
    me_config *job;        /**< read, not finished */
    me_search_run *run;
    me_progress progress;
} command;

static const char deciding_name[] = "candidates decided";

static void show_preparation(void *self, const char *what, bool begins,
                             uint32_t count)
{
    me_progress *progress = self;
    if (begins) {
        me_progress_next(progress, what, count);
    } else {
        me_progress_step(progress);
    }
}

static bool show_progress(void *self, const me_candidate *candidate,
                          uint32_t done, uint32_t count)
{
    me_progress *progress = self;
    (void)candidate;
    (void)done;
    // Open: bounds may decide all that is left at once.
    if (progress->what != deciding_name) {
        me_progress_next(progress, deciding_name, count);
    }
    me_progress_step(progress);
    return true;
}

/** An option that is varied and set as well would be set for nothing. */
static me_status check_sets(const command *c, me_diag *diag)
{
    for (int32_t i = 0; i < c->cli->n_sets; i++) {
        char name[NAME_BYTES] = "";
        (void)snprintf(name, sizeof name, "%.*s",
                       (int)strcspn(c->cli->sets[i], "= "), c->cli->sets[i]);
        if (me_space_varies(c->job, name)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "--set %s: memest search varies it; --space %s "
                           "fixes it",
                           c->cli->sets[i], c->cli->sets[i]);
        }
    }
    return ME_OK;
}

static me_status read_command(command *c, me_diag *diag)
{
    me_status status = me_format_read(c->cli->format, NULL, diag, &c->format);
    if (status == ME_OK && c->cli->budget != NULL &&
        (me_parse_double(c->cli->budget, &c->budget_seconds) != ME_OK ||
         !(c->budget_seconds > 0))) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--budget %s: must be seconds over 0, such as 600",
                         c->cli->budget);
    }
    c->job = me_config_create();
    if (status == ME_OK && c->job == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    if (status == ME_OK) {
        status = me_job_read_unfinished(c->cli, c->job, diag);
    }
    if (status == ME_OK) {
        status = check_sets(c, diag);
    }
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

static me_search_request request_of(command *c)
{
    const me_cli *cli = c->cli;
    return (me_search_request){
        .space = {.spaces = cli->spaces,
                  .n_spaces = (size_t)cli->n_spaces,
                  .gpus = cli->gpus},
        .schedules = cli->schedules,
        .n_schedules = (size_t)cli->n_schedules,
        .strict = cli->strict,
        .budget_seconds = c->budget_seconds,
        .log_path = cli->jsonl,
        .threads = me_workers_share((uint32_t)cli->threads,
                                    (uint32_t)me_transport_size(c->transport)),
        .listener = {.decided =
                         me_shows_progress(c->transport) ? show_progress : NULL,
                     .prepares = me_shows_progress(c->transport)
                                     ? show_preparation
                                     : NULL,
                     .self = &c->progress},
    };
}

/** On process 0, which has what was found. */
static me_status print(const command *c, me_diag *diag)
{
    if (me_transport_rank(c->transport) != 0) {
        return ME_OK;
    }
    me_str text = {.columns = me_terminal_of(c->cli).width};
    me_status status =
        me_search_append(me_search_run_found(c->run), c->format, diag, &text);
    status = me_transport_check(
        c->transport, me_alloc_check(c->cli->lost, status, diag), diag);
    if (status == ME_OK) {
        status = me_print_text(&text, c->cli->output, diag);
    }
    me_str_fini(&text);
    return status;
}

/** The exit code of --require-fit. */
static int code_of(const me_search_found *found)
{
    return found->n_fit > 0 ? ME_EXIT_OK
           : found->n_open > 0 || found->counts[ME_SEARCH_UNDECIDED] > 0
               ? ME_EXIT_CANNOT_SAY
               : ME_EXIT_DOES_NOT_FIT;
}

int me_search(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    command c = {.transport = transport, .cli = cli};
    me_status status =
        me_input_agree(transport, "the job", read_command(&c, diag), diag);
    if (status == ME_OK) {
        status = me_config_agree(transport, c.job, diag);
    }
    if (status == ME_OK) {
        me_progress_begin(&c.progress, me_shows_progress(transport),
                          deciding_name, 0);
        const me_search_request request = request_of(&c);
        status = me_search_run_create(transport, &request, c.job, diag, &c.run);
        me_progress_end(&c.progress);
    }
    if (status == ME_OK) {
        status = me_transport_agree(transport, print(&c, diag), diag);
    }
    int code = me_exit_code(status);
    if (status == ME_OK && cli->require_fit &&
        me_transport_rank(transport) == 0) {
        code = code_of(me_search_run_found(c.run));
    }
    me_search_run_destroy(c.run);
    me_config_destroy(c.job);
    return code;
}
