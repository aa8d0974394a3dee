/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/compare.h"

#include "app/estimate.h"
#include "app/job.h"
#include "app/output.h"
#include "app/run.h"
#include "app/ticks_step.h"
#include "app/variant.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/workers.h"
#include "report/compare.h"

#include <stdio.h>
#include <string.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

/** One setting and what became of it. */
typedef struct setting {
    const me_schedule_choice *choice;
    const me_variant *variant;
    char schedule[ME_VARIANT_NAME];
    me_run *run;        /**< NULL: it cannot run */
    me_step_time *step; /**< under fixed durations; owned, or NULL */
    me_status status;   /**< of what was done last; with `diag` */
    me_diag diag;
    char reason[ME_DIAG_LINE];
} setting;

/** One process's part of a comparison; what is NULL is not made yet. */
typedef struct comparison {
    me_transport *transport;
    const me_cli *cli;
    me_format format;
    me_ticks durations; /**< with --durations */
    me_config *job;     /**< read, not finished */
    me_schedule_choice *choices;
    me_variant *variants; /**< the first is the job as it is */
    size_t n_choices;
    size_t n_variants;
    setting *settings;
    me_compare_row *rows;
    size_t n_settings;
} comparison;

static me_status agree(const comparison *c, me_status status, me_diag *diag)
{
    return me_transport_agree(c->transport, status, diag);
}

static me_status read_choices(comparison *c, me_diag *diag)
{
    const me_cli *cli = c->cli;
    if (cli->n_schedules == 0 && cli->n_variants == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest compare needs --schedule or --variant, such as "
                       "--schedule 1f1b --schedule interleaved:2");
    }
    c->n_choices = cli->n_schedules == 0 ? 1 : (size_t)cli->n_schedules;
    c->n_variants = (size_t)cli->n_variants + 1;
    c->choices = me_alloc(c->n_choices, sizeof *c->choices, "compare.choices");
    c->variants =
        me_alloc(c->n_variants, sizeof *c->variants, "compare.variants");
    if (c->choices == NULL || c->variants == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to compare");
    }
    c->variants[0].assignments = "";
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < cli->n_schedules; i++) {
        status =
            me_schedule_choice_parse(cli->schedules[i], diag, &c->choices[i]);
    }
    for (int32_t i = 0; status == ME_OK && i < cli->n_variants; i++) {
        status = me_variant_parse(cli->variants[i], diag, &c->variants[i + 1]);
    }
    return status;
}

static me_status read_durations(comparison *c, me_diag *diag)
{
    c->durations = me_ticks_default();
    if (c->cli->durations == NULL) {
        return ME_OK;
    }
    return c->format == ME_FORMAT_CSV
               ? me_fail(diag, ME_ERR_CONFIG,
                         "--durations: --format must be text, json or html, "
                         "not csv")
               : me_ticks_parse(c->cli->durations, diag, &c->durations);
}

static me_status read_command(comparison *c, me_diag *diag)
{
    me_status status = me_format_read(c->cli->format, NULL, diag, &c->format);
    if (status == ME_OK) {
        status = read_durations(c, diag);
    }
    if (status == ME_OK) {
        status = read_choices(c, diag);
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

static me_status make_settings(comparison *c, me_diag *diag)
{
    c->n_settings = c->n_choices * c->n_variants;
    c->settings =
        me_alloc(c->n_settings, sizeof *c->settings, "compare.settings");
    c->rows = me_alloc(c->n_settings, sizeof *c->rows, "compare.rows");
    if (c->settings == NULL || c->rows == NULL) {
        c->n_settings = 0;
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to compare");
    }
    for (size_t i = 0; i < c->n_settings; i++) {
        setting *s = &c->settings[i];
        s->variant = &c->variants[i / c->n_choices];
        s->choice = &c->choices[i % c->n_choices];
        (void)snprintf(s->schedule, sizeof s->schedule, "%s", s->choice->name);
    }
    return ME_OK;
}

/** Does it say which schedule runs? */
static bool sets_schedule(const me_variant *variant)
{
    static const char option[] = "pipeline.schedule";
    for (int32_t i = 0; i < variant->n_sets; i++) {
        if (strncmp(variant->sets[i], option, sizeof option - 1) == 0) {
            return true;
        }
    }
    return false;
}

/** What a variant sets must exist, and no schedule may take its place; whether
 *  it makes sense is seen later. */
static me_status check_variants(const comparison *c, me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 1; status == ME_OK && i < c->n_variants; i++) {
        if (c->cli->n_schedules > 0 && sets_schedule(&c->variants[i])) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "--variant %.200s: every --schedule takes the place "
                           "of the schedule that it sets; give one of the two",
                           c->variants[i].name);
        }
        me_config *config = me_config_clone(c->job);
        if (config == NULL) {
            return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
        }
        me_diag own = {.status = ME_OK};
        status = me_variant_apply(&c->variants[i], config, &own);
        me_config_destroy(config);
        if (status != ME_OK) {
            (void)me_fail(diag, status, "--variant %s: %s", c->variants[i].name,
                          own.text);
        }
    }
    return status;
}

/** The job of one setting, finished. */
static me_status finish_job(const comparison *c, const setting *s,
                            me_diag *diag, me_config **config_out)
{
    me_config *config = me_config_clone(c->job);
    if (config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    me_status status = me_variant_apply(s->variant, config, diag);
    if (status == ME_OK) {
        status = me_schedule_choice_apply(s->choice, config, diag);
    }
    if (status == ME_OK) {
        status =
            me_config_finish(config, me_transport_size(c->transport), diag);
    }
    if (status != ME_OK) {
        me_config_destroy(config);
        return status;
    }
    *config_out = config;
    return ME_OK;
}

/** Is it the setting's fault and not ours? */
static bool is_reason(me_status status)
{
    return status == ME_ERR_CONFIG || status == ME_ERR_UNSUPPORTED ||
           status == ME_ERR_MISMATCH || status == ME_ERR_OVERFLOW;
}

/** Of this host that are this process's. */
static uint32_t count_threads(const comparison *c)
{
    return me_workers_share((uint32_t)c->cli->threads,
                            (uint32_t)me_transport_size(c->transport));
}

static me_status plan_setting(const comparison *c, setting *s, me_diag *diag)
{
    const me_run_options options = {
        .strict = c->cli->strict,
        .no_fold = c->cli->no_fold,
        .keeps_course = true,
        .threads = count_threads(c),
        .events_iteration = ME_STEADY_ITERATION,
    };
    me_config *config = NULL;
    me_status status = finish_job(c, s, diag, &config);
    if (status == ME_OK) {
        if (s->choice->schedule == NULL) {
            me_schedule_choice_name(config, s->schedule);
        }
        status = me_run_create(c->transport, config, &options, diag, &s->run);
    }
    if (status == ME_OK && c->cli->durations != NULL) {
        status = me_ticks_step_create(me_run_plan(s->run), &c->durations, diag,
                                      &s->step);
    }
    return status;
}

static bool plan_task(void *self, uint32_t task)
{
    const comparison *c = self;
    setting *s = &c->settings[task];
    s->status = agree(c, plan_setting(c, s, &s->diag), &s->diag);
    return s->status == ME_OK || is_reason(s->status);
}

static bool gather_task(void *self, uint32_t task)
{
    const comparison *c = self;
    setting *s = &c->settings[task];
    if (s->run != NULL) {
        s->status = me_run_gather(s->run, &s->diag);
    }
    return s->status == ME_OK || is_reason(s->status);
}

/** What the job cannot do is written down. */
static me_status settle(setting *s, me_diag *diag)
{
    const me_status status = s->status;
    if (status == ME_OK) {
        return ME_OK;
    }
    me_run_destroy(s->run);
    s->run = NULL;
    s->status = ME_OK;
    if (is_reason(status)) {
        me_diag_line(&s->diag, s->reason);
        return ME_OK;
    }
    *diag = s->diag;
    /* A file that cannot be read is the user's input, not our trouble. */
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

/** Do something to each setting: one after the other where processes have to
 *  do it together. */
static me_status for_settings(comparison *c,
                              bool (*run)(void *self, uint32_t task),
                              me_diag *diag)
{
    const bool is_alone = me_transport_size(c->transport) == 1;
    me_workers_run(is_alone ? count_threads(c) : 1, (uint32_t)c->n_settings,
                   run, c);
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < c->n_settings; i++) {
        status = settle(&c->settings[i], diag);
    }
    return status;
}

/** All settings that can run, in one go. */
static me_status simulate(const comparison *c, me_diag *diag)
{
    me_run **runs = me_alloc(c->n_settings, sizeof(me_run *), "compare.runs");
    if (runs == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to compare");
    }
    uint32_t n = 0;
    for (size_t i = 0; i < c->n_settings; i++) {
        if (c->settings[i].run != NULL) {
            runs[n++] = c->settings[i].run;
        }
    }
    const me_status status = me_runs_simulate(runs, n, diag);
    me_free(runs);
    return status;
}

static const me_compare_row *fill_rows(comparison *c)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        const setting *s = &c->settings[i];
        const bool runs = s->run != NULL;
        c->rows[i] = (me_compare_row){
            .schedule = s->schedule[0] == '\0' ? "own" : s->schedule,
            .variant = s->variant->name,
            .assignments = s->variant->assignments,
            .report = runs ? me_run_report(s->run) : NULL,
            .ticks_step = runs ? s->step : NULL,
            .reason = runs ? NULL : s->reason,
        };
    }
    return c->rows;
}

/** On process 0, which has the reports. */
static me_status print(comparison *c, me_diag *diag)
{
    if (me_transport_rank(c->transport) != 0) {
        return ME_OK;
    }
    const me_comparison what = {
        .version = ME_VERSION,
        .name = c->job->name,
        .durations = c->cli->durations == NULL ? NULL : &c->durations,
        .rows = fill_rows(c),
        .n_rows = c->n_settings,
    };
    me_str text = {0};
    me_status status =
        me_compare_append(&what, c->format, c->cli->course, diag, &text);
    if (status == ME_OK) {
        status = me_print_text(&text, c->cli->output, diag);
    }
    me_str_fini(&text);
    return status;
}

/** What is wrong with every setting alike is wrong with the job, and no row. */
static me_status check_reasons(const comparison *c, me_diag *diag)
{
    const setting *first = &c->settings[0];
    for (size_t i = 0; i < c->n_settings; i++) {
        const setting *s = &c->settings[i];
        if (s->run != NULL || strcmp(s->reason, first->reason) != 0) {
            return ME_OK;
        }
    }
    return me_fail(diag, ME_ERR_CONFIG, "%s", first->reason);
}

static me_status run(comparison *c, me_diag *diag)
{
    me_status status = agree(c, read_command(c, diag), diag);
    if (status == ME_OK) {
        status = agree(c, check_variants(c, diag), diag);
    }
    if (status == ME_OK) {
        status = agree(c, make_settings(c, diag), diag);
    }
    if (status == ME_OK) {
        status = for_settings(c, plan_task, diag);
    }
    if (status == ME_OK) {
        status = agree(c, simulate(c, diag), diag);
    }
    if (status == ME_OK) {
        status = for_settings(c, gather_task, diag);
    }
    if (status == ME_OK) {
        status = agree(c, check_reasons(c, diag), diag);
    }
    return status == ME_OK ? agree(c, print(c, diag), diag) : status;
}

/** Does one of them fit, and not by chance? Process 0 knows. */
static bool lets_go(const comparison *c)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        const me_report *report = c->rows[i].report;
        if (report != NULL && me_verdict_lets_go(&report->verdict)) {
            return true;
        }
    }
    return false;
}

static void comparison_fini(comparison *c)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        me_run_destroy(c->settings[i].run);
        me_step_time_destroy(c->settings[i].step);
    }
    for (size_t i = 0; c->variants != NULL && i < c->n_variants; i++) {
        me_variant_fini(&c->variants[i]);
    }
    me_free(c->settings);
    me_free(c->rows);
    me_free(c->variants);
    me_free(c->choices);
    me_config_destroy(c->job);
}

int me_compare(me_transport *transport, const me_cli *cli, me_diag *diag)
{
    comparison c = {.transport = transport, .cli = cli};
    const me_status status = run(&c, diag);
    int code = me_exit_code(status);
    if (status == ME_OK && cli->require_fit &&
        me_transport_rank(transport) == 0 && !lets_go(&c)) {
        code = ME_EXIT_DOES_NOT_FIT;
    }
    comparison_fini(&c);
    return code;
}
