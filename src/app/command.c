/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/command.h"

#include "alloc/replay.h"
#include "app/apart.h"
#include "app/cli.h"
#include "app/command_agree.h"
#include "app/compare_command.h"
#include "app/diff_command.h"
#include "app/estimate_command.h"
#include "app/list_command.h"
#include "app/options_command.h"
#include "app/output.h"
#include "app/schedule_command.h"
#include "app/search_command.h"
#include "app/trace_command.h"
#include "app/track_command.h"
#include "base/alloc.h"
#include "base/input.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/progress.h"
#include "config/options.h"
#include "run/agree.h"
#include "run/job_card.h"

#include <stdlib.h>
#include <string.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

enum {
    HELP_WIDTH = 80
};

/** The allocator's flags of `memest replay`. */
static me_status replay_options(const me_cli *cli, me_diag *diag,
                                me_replay_options *options)
{
    *options = me_replay_options_default();
    if (!me_replay_format_find(cli->format, &options->format)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--format %s: text, json and csv are known",
                       cli->format);
    }
    options->conf_text = cli->alloc_conf;
    options->device = cli->device_index;
    const char *unit =
        cli->memory_limit == NULL ? NULL : me_lacking_unit(cli->memory_limit);
    if (unit != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--memory-limit %s: must be at least 1MiB: did you mean "
                       "%s%s?",
                       cli->memory_limit, cli->memory_limit, unit);
    }
    if (cli->memory_limit != NULL &&
        (me_parse_bytes(cli->memory_limit, &options->pool.limit_bytes) !=
             ME_OK ||
         options->pool.limit_bytes == 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--memory-limit %s: must be a whole number over 0 of "
                       "bytes, or of KiB, MiB, GiB or TiB, such as 80GiB",
                       cli->memory_limit);
    }
    me_status status = ME_OK;
    if (cli->alloc_conf != NULL) {
        status =
            me_alloc_conf_parse(cli->alloc_conf, diag, &options->pool.conf);
        status = status == ME_OK ? ME_OK
                                 : me_fail_of(diag, status, "--alloc-conf %s",
                                              cli->alloc_conf);
    }
    if (status == ME_OK && cli->device == NULL &&
        options->pool.conf.per_process_memory_fraction >= 0.0) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--alloc-conf %s: per_process_memory_fraction is of "
                         "the card's memory: give --device NAME, or "
                         "--memory-limit SIZE in its place",
                         cli->alloc_conf);
    }
    return status == ME_OK && cli->device != NULL
               ? me_card_pool(cli->device, diag, &options->pool)
               : status;
}

static me_status replay_operand(const me_replay_options *options,
                                const char *path, me_diag *diag,
                                me_replay_summary *summary_out, me_str *text)
{
    if (strcmp(path, "-") == 0) {
        return me_replay_run(options, path, diag, summary_out, text);
    }
    FILE *file = NULL;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return ME_ERR_CONFIG; // the user's input, not our trouble
    }
    options->part->bytes = me_progress_bytes_of(file);
    status = me_replay_file(options, file, path, diag, summary_out, text);
    (void)fclose(file);
    return status;
}

static me_status replay(const me_cli *cli, bool shows_progress, me_diag *diag,
                        me_str *text, bool *is_oom_out)
{
    enum {
        PERCENT = 100
    };

    me_progress progress = {.total = 0};
    me_progress_part part = {.progress = &progress, .steps = PERCENT};
    me_replay_options options;
    me_replay_summary summary = {.is_oom = false};
    me_status status = replay_options(cli, diag, &options);
    options.part = &part;
    if (status == ME_OK) {
        me_progress_begin(&progress, shows_progress, "% of the recording read",
                          PERCENT);
        status = replay_operand(&options, cli->operand, diag, &summary, text);
        me_progress_end(&progress);
    }
    *is_oom_out = summary.is_oom;
    return status;
}

static me_status set_up_log(const me_cli *cli, me_diag *diag)
{
    const char *said = getenv("MEMEST_LOG");
    const char *name = cli->log_level == NULL ? said : cli->log_level;
    me_log_level level = ME_LOG_WARN;
    if (name != NULL && !me_log_level_find(name, &level) &&
        (cli->log_level != NULL || name[0] != '\0')) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s%.60s: error, warn, info, debug and trace are levels",
                       cli->log_level == NULL ? "MEMEST_LOG=" : "--log-level ",
                       name);
    }
    me_log_set_level(level);
    return cli->log_file == NULL ? ME_OK : me_log_open(cli->log_file, diag);
}

/** What simulates no ranks: process 0 does it alone. */
static bool is_serial(const me_cli *cli)
{
    return cli->help || cli->version || strcmp(cli->command, "options") == 0 ||
           strcmp(cli->command, "schedule") == 0 ||
           strcmp(cli->command, "list") == 0 ||
           strcmp(cli->command, "diff") == 0 ||
           strcmp(cli->command, "replay") == 0;
}

/** Help is as wide as a terminal wherever it goes; what schedule draws and replay
 *  counts stands in long lines. */
static unsigned columns_of(const me_cli *cli)
{
    const unsigned width = me_terminal_of(cli).width;
    if (cli->help) {
        return width > 0 && width < HELP_WIDTH ? width : HELP_WIDTH;
    }
    return strcmp(cli->command, "replay") == 0 ||
                   strcmp(cli->command, "schedule") == 0
               ? 0
               : width;
}

static int run_serial(const me_transport *transport, const me_cli *cli,
                      me_diag *diag)
{
    me_str text = {.columns = columns_of(cli)};
    bool is_oom = false;
    bool differs = false;
    me_status status = ME_OK;
    if (cli->help) {
        me_cli_help(cli, &text);
    } else if (cli->version) {
        me_str_printf(&text, "memest %s\n", ME_VERSION);
    } else if (strcmp(cli->command, "options") == 0) {
        status = me_options_command(cli, diag, &text);
    } else if (strcmp(cli->command, "schedule") == 0) {
        status = me_schedule_command(cli, diag, &text);
    } else if (strcmp(cli->command, "list") == 0) {
        status = me_list_command(cli, diag, &text);
    } else if (strcmp(cli->command, "diff") == 0) {
        status = me_diff_command(cli, me_shows_progress(transport), diag, &text,
                                 &differs);
    } else {
        status =
            replay(cli, me_shows_progress(transport), diag, &text, &is_oom);
    }
    status = me_transport_check(transport,
                                me_alloc_check(cli->lost, status, diag), diag);
    if (status == ME_OK) {
        status = me_print_text(&text, cli->output, diag);
    }
    me_str_fini(&text);
    return status == ME_OK && (differs || (cli->require_fit && is_oom))
               ? ME_EXIT_DOES_NOT_FIT
               : me_exit_code(status);
}

int me_command_run(me_transport *transport, int argc, char **argv,
                   me_diag *diag)
{
    me_cli cli;
    const uint64_t lost = me_alloc_lost();
    me_status status =
        me_input_agree(transport, "the command line",
                       me_cli_parse(argc, argv, diag, &cli), diag);
    cli.lost = lost;
    if (status == ME_OK) {
        status = me_transport_agree(transport,
                                    me_outputs_keep_apart(&cli, diag), diag);
    }
    if (status == ME_OK) {
        status = me_transport_agree(transport, set_up_log(&cli, diag), diag);
    }
    if (status == ME_OK) {
        status = me_cli_agree(transport, &cli, diag);
    }
    if (status != ME_OK) {
        return me_exit_code(status);
    }
    if (strcmp(cli.command, "track") == 0 && !is_serial(&cli)) {
        return me_track(transport, &cli, diag);
    }
    if (me_is_trace(&cli) && !is_serial(&cli)) {
        return me_trace(transport, &cli, diag);
    }
    if (!is_serial(&cli)) {
        return strcmp(cli.command, "compare") == 0
                   ? me_compare(transport, &cli, diag)
               : strcmp(cli.command, "search") == 0
                   ? me_search(transport, &cli, diag)
                   : me_estimate(transport, &cli, diag);
    }
    return me_transport_rank(transport) == 0 ? run_serial(transport, &cli, diag)
                                             : ME_EXIT_OK;
}
