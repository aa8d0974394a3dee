/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/schedule_command.h"

#include "base/parse.h"
#include "config/schedule_choice.h"
#include "parallel/megatron_order.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "report/schedule_report.h"

#include <string.h>

/** The pipeline that the flags describe. */
static me_pipeline pipeline_of(const me_cli *cli, const me_schedule *schedule)
{
    me_pipeline p = {
        .ranks = cli->pp,
        .microbatches = cli->microbatches,
        .chunks = cli->chunks,
        .group_size = cli->group_size,
        .memory_limit = cli->in_flight,
    };
    p.chunks = me_schedule_chunks(schedule, &p);
    return p;
}

/** Flags that the schedule does not read. */
static me_status check_named_flags(const me_cli *cli,
                                   const me_schedule *schedule, me_diag *diag)
{
    const bool is_searched = schedule == me_schedule_find("zb_auto") ||
                             schedule == me_schedule_find("v_auto");
    if (cli->group_size != 0 && schedule != me_schedule_find("interleaved")) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest schedule %s: --group-size is for interleaved",
                       schedule->name);
    }
    if (cli->in_flight != 0 && !is_searched) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest schedule %s: --in-flight is for zb_auto and "
                       "v_auto",
                       schedule->name);
    }
    if (cli->legacy_b) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest schedule %s: --legacy-b is for a file of "
                       "actions, FILE.csv",
                       schedule->name);
    }
    return ME_OK;
}

static me_status read_named(const me_cli *cli, me_diag *diag,
                            me_pipeline_order **order_out)
{
    const me_schedule *schedule = NULL;
    me_status status =
        me_schedule_named("memest schedule", cli->operand, diag, &schedule);
    if (status == ME_OK) {
        status = check_named_flags(cli, schedule, diag);
    }
    if (status != ME_OK) {
        return status;
    }
    if (cli->pp == 0 || cli->microbatches == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest schedule %s needs --pp and --microbatches",
                       schedule->name);
    }
    const me_pipeline p = pipeline_of(cli, schedule);
    if (!cli->blocking) {
        return me_pipeline_order_create(schedule, &p, diag, order_out);
    }
    if (schedule != me_schedule_find(p.chunks == 1 ? "1f1b" : "interleaved")) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest schedule %s: --blocking is for 1f1b and "
                       "interleaved, Megatron-LM's own",
                       schedule->name);
    }
    return me_megatron_order_create(&p, diag, order_out);
}

static me_status check_file_flags(const me_cli *cli, me_diag *diag)
{
    if (cli->chunks != 0 || cli->group_size != 0 || cli->in_flight != 0 ||
        cli->microbatches != 0 || cli->blocking) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "memest schedule %s: the file says what --microbatches, "
            "--chunks, --group-size, --in-flight and --blocking would",
            cli->operand);
    }
    return ME_OK;
}

static me_status read_order(const me_cli *cli, me_diag *diag,
                            me_pipeline_order **order_out)
{
    if (!me_ends_with(cli->operand, ".csv")) {
        return read_named(cli, diag, order_out);
    }
    me_status status = check_file_flags(cli, diag);
    if (status == ME_OK) {
        status = me_schedule_file_read(
            cli->operand, cli->legacy_b ? ME_CSV_OLDER : ME_CSV_GUESS, diag,
            order_out);
    }
    if (status == ME_OK && cli->pp != 0 && cli->pp != (*order_out)->n_ranks) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "memest schedule %s: the file has rows for %d ranks, "
                         "not --pp %d",
                         cli->operand, (*order_out)->n_ranks, cli->pp);
    }
    return status;
}

static me_status make_timeline(const me_cli *cli,
                               const me_pipeline_order *order, me_ticks *ticks,
                               me_diag *diag, me_timeline **timeline_out)
{
    const me_status status = cli->durations == NULL
                                 ? ME_OK
                                 : me_ticks_parse(cli->durations, diag, ticks);
    if (status != ME_OK) {
        return status;
    }
    const me_timeline_model model = me_ticks_model(ticks);
    return cli->blocking
               ? me_timeline_create_blocking(order, &model, diag, timeline_out)
               : me_timeline_create(order, &model, diag, timeline_out);
}

static me_status write_report(const me_cli *cli, const me_pipeline_order *order,
                              const me_pipeline_order *shown, me_diag *diag,
                              me_str *text)
{
    me_ticks ticks = me_ticks_default();
    me_timeline *timeline = NULL;
    me_status status = make_timeline(cli, order, &ticks, diag, &timeline);
    if (status == ME_OK) {
        const me_schedule *schedule = me_schedule_find(cli->operand);
        const me_schedule_report report = {
            .name = schedule == NULL ? cli->operand : schedule->name,
            .summary = schedule == NULL ? NULL : schedule->summary,
            .order = order,
            .shown = shown,
            .ticks = &ticks,
            .timeline = timeline,
        };
        if (strcmp(cli->format, "json") == 0) {
            status = me_schedule_report_json(&report, diag, text);
        } else {
            me_schedule_report_text(&report, text);
        }
    }
    me_timeline_destroy(timeline);
    return status;
}

static me_status write_order(const me_cli *cli, const me_pipeline_order *order,
                             const me_pipeline_order *shown, me_diag *diag,
                             me_str *text)
{
    if (strcmp(cli->format, "csv") != 0) {
        return write_report(cli, order, shown, diag, text);
    }
    if (cli->durations != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--durations: --format must be text or json, not csv");
    }
    me_schedule_csv_write(shown, text);
    return ME_OK;
}

static me_status list_schedules(const me_cli *cli, me_diag *diag, me_str *text)
{
    if (cli->pp != 0 || cli->microbatches != 0 || cli->chunks != 0 ||
        cli->group_size != 0 || cli->in_flight != 0 || cli->comms ||
        cli->blocking || cli->legacy_b || cli->durations != NULL ||
        strcmp(cli->format, "text") != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest schedule list takes --output alone");
    }
    const me_schedule *schedule = NULL;
    for (uint32_t i = 0; (schedule = me_schedule_at(i)) != NULL; i++) {
        me_str_printf(text, "%-18s %s", schedule->name, schedule->summary);
        if (schedule->torch_name != NULL) {
            me_str_printf(text, " (PyTorch: %s)", schedule->torch_name);
        }
        me_str_append(text, "\n");
    }
    return ME_OK;
}

/** The order as it is asked for: with `--comms` its sends and receives, which a
 *  file may have already; else what is computed alone. NULL: as it is. */
static me_status make_shown(const me_cli *cli, const me_pipeline_order *order,
                            me_diag *diag, me_pipeline_order **shown_out)
{
    if (cli->blocking) {
        return ME_OK;
    }
    return cli->comms ? me_pipeline_order_lower(order, diag, shown_out)
                      : me_pipeline_order_copy(order, true, diag, shown_out);
}

me_status me_schedule_command(const me_cli *cli, me_diag *diag, me_str *text)
{
    if (strcmp(cli->operand, "list") == 0) {
        return list_schedules(cli, diag, text);
    }
    me_pipeline_order *order = NULL;
    me_pipeline_order *shown = NULL;
    me_status status = read_order(cli, diag, &order);
    if (order == NULL) {
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    if (status == ME_OK) {
        status = make_shown(cli, order, diag, &shown);
    }
    if (status == ME_OK) {
        status =
            write_order(cli, order, shown == NULL ? order : shown, diag, text);
    }
    me_pipeline_order_destroy(shown);
    me_pipeline_order_destroy(order);
    return status;
}
