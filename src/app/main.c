/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/replay.h"
#include "app/card.h"
#include "app/cli.h"
#include "app/estimate.h"
#include "base/log.h"
#include "base/parse.h"
#include "collectives/transport.h"
#include "config/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

static int fail(const me_diag *diag)
{
    if (diag->where[0] != '\0' && diag->line > 0) {
        me_log(ME_LOG_ERROR, "%s:%d: %s", diag->where, diag->line, diag->text);
    } else if (diag->where[0] != '\0') {
        me_log(ME_LOG_ERROR, "%s: %s", diag->where, diag->text);
    } else {
        me_log(ME_LOG_ERROR, "%s", diag->text);
    }
    return me_exit_code(diag->status);
}

static int print(const me_str *text)
{
    const bool is_written = me_str_status(text) == ME_OK &&
                            fputs(me_str_text(text), stdout) >= 0 &&
                            fflush(stdout) == 0;
    return is_written ? ME_EXIT_OK : ME_EXIT_INTERNAL;
}

static int list_options(void)
{
    me_str text = {0};
    me_options_list(&text);
    const int code = print(&text);
    me_str_fini(&text);
    return code;
}

static int help(void)
{
    me_str text = {0};
    me_cli_help(&text);
    const int code = print(&text);
    me_str_fini(&text);
    return code;
}

/** The card that a recording is replayed on: what CUDA itself takes of it is
 *  gone; what else lay outside of the allocator, no recording says. */
static me_status replay_card(const char *name, me_diag *diag,
                             me_pool_options *pool)
{
    me_device_card card;
    const me_status status = me_card_choose(name, diag, &card);
    if (status == ME_OK) {
        pool->device_total_bytes = card.total_bytes;
        pool->outside_bytes = card.context_bytes;
        pool->capacity_bytes = card.total_bytes > card.context_bytes
                                   ? card.total_bytes - card.context_bytes
                                   : 1;
    }
    return status;
}

/** The allocator's flags of `memest replay`. */
static me_status replay_options(const me_cli *cli, me_diag *diag,
                                me_replay_options *options)
{
    *options = me_replay_options_default();
    options->is_json = strcmp(cli->format, "json") == 0;
    options->conf_text = cli->alloc_conf;
    if (cli->memory_limit != NULL &&
        me_parse_bytes(cli->memory_limit, &options->pool.limit_bytes) !=
            ME_OK) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--memory-limit %s: give bytes, or KiB, MiB, GiB, TiB",
                       cli->memory_limit);
    }
    me_status status = ME_OK;
    if (cli->alloc_conf != NULL) {
        status =
            me_alloc_conf_parse(cli->alloc_conf, diag, &options->pool.conf);
    }
    return status == ME_OK && cli->device != NULL
               ? replay_card(cli->device, diag, &options->pool)
               : status;
}

static int replay(const me_cli *cli, me_diag *diag)
{
    me_replay_options options;
    me_replay_summary summary = {.is_oom = false};
    me_str text = {0};
    me_status status = replay_options(cli, diag, &options);
    if (status == ME_OK) {
        status = me_replay_run(&options, cli->operand, diag, &summary, &text);
    }
    int code = status == ME_OK ? print(&text) : fail(diag);
    if (code == ME_EXIT_OK && cli->require_fit && summary.is_oom) {
        code = ME_EXIT_DOES_NOT_FIT;
    }
    me_str_fini(&text);
    return code;
}

static me_status set_up_log(const me_cli *cli, me_diag *diag)
{
    const char *name =
        cli->log_level == NULL ? getenv("MEMEST_LOG") : cli->log_level;
    me_log_level level = ME_LOG_WARN;
    if (name != NULL && !me_log_level_find(name, &level)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--log-level %s: error, warn, info, debug and trace "
                       "are levels",
                       name);
    }
    me_log_set_level(level);
    return cli->log_file == NULL ? ME_OK : me_log_open(cli->log_file, diag);
}

/** Commands that simulate ranks, on all processes that there are. */
static int run_collective(int *argc, char ***argv, const me_cli *cli,
                          me_diag *diag)
{
    me_transport *transport = NULL;
    if (me_transport_mpi_create(argc, argv, diag, &transport) != ME_OK) {
        return fail(diag);
    }
    const int code = me_estimate(transport, cli, diag);
    if (code != ME_EXIT_OK && code != ME_EXIT_DOES_NOT_FIT &&
        me_transport_rank(transport) == 0) {
        (void)fail(diag);
    }
    me_transport_destroy(transport);
    return code;
}

static int run(int *argc, char ***argv, const me_cli *cli, me_diag *diag)
{
    if (cli->help) {
        return help();
    }
    if (cli->version) {
        return printf("memest %s\n", ME_VERSION) < 0 ? ME_EXIT_INTERNAL
                                                     : ME_EXIT_OK;
    }
    if (set_up_log(cli, diag) != ME_OK) {
        return fail(diag);
    }
    if (strcmp(cli->command, "options") == 0) {
        return list_options();
    }
    if (strcmp(cli->command, "replay") == 0) {
        return replay(cli, diag);
    }
    return run_collective(argc, argv, cli, diag);
}

int main(int argc, char **argv)
{
    me_cli cli;
    me_diag diag = {.status = ME_OK};
    const int code = me_cli_parse(argc, argv, &diag, &cli) == ME_OK
                         ? run(&argc, &argv, &cli, &diag)
                         : fail(&diag);
    me_log_close();
    return code;
}
