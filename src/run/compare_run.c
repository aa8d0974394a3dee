/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/compare_run.h"

#include "base/alloc.h"
#include "base/workers.h"
#include "report/verdict.h"
#include "run/agree.h"
#include "run/exit_code.h"
#include "run/job_run.h"
#include "run/ticks_step.h"
#include "run/variant.h"

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
    bool is_split;      /**< the processes were not given the same job */
    me_diag diag;
    char reason[ME_DIAG_LINE];
} setting;

/** One process's part of a comparison; what is NULL is not made yet. */
struct me_compare_run {
    me_transport *transport;
    me_compare_request request;
    me_ticks durations;   /**< with fixed ones */
    const me_config *job; /**< read, not finished; borrowed while it runs */
    me_schedule_choice *choices;
    me_variant *variants; /**< the first is the job as it is */
    size_t n_choices;
    size_t n_variants;
    setting *settings;
    me_compare_row *rows;
    size_t n_settings;
    char name[ME_VARIANT_NAME]; /**< of the job */
    me_comparison comparison;   /**< for whoever prints it */
};

static me_status agree(const me_compare_run *c, me_status status, me_diag *diag)
{
    return me_transport_agree(c->transport, status, diag);
}

#define TWICE "--%s %s is there twice"

/** Equal rows would not be told apart. */
static me_status check_names(const me_compare_run *c, me_diag *diag)
{
    for (size_t i = 0; i < c->n_choices; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(c->choices[i].name, c->choices[j].name) == 0) {
                return me_fail(diag, ME_ERR_CONFIG, TWICE, "schedule",
                               c->choices[i].name);
            }
        }
    }
    for (size_t i = 0; i < c->n_variants; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(c->variants[i].name, c->variants[j].name) == 0) {
                return me_fail(diag, ME_ERR_CONFIG, TWICE, "variant",
                               c->variants[i].name);
            }
        }
    }
    return ME_OK;
}

static me_status read_choices(me_compare_run *c, me_diag *diag)
{
    const me_compare_request *r = &c->request;
    if (r->n_schedules == 0 && r->n_variants == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest compare needs --schedule or --variant, such as "
                       "--schedule 1f1b --schedule interleaved:2");
    }
    c->n_choices = r->n_schedules == 0 ? 1 : r->n_schedules;
    const size_t n_own = r->leaves_job_out ? 0 : 1;
    c->n_variants = r->n_variants + n_own;
    c->choices = me_alloc(c->n_choices, sizeof *c->choices, "compare.choices");
    c->variants =
        me_alloc(c->n_variants, sizeof *c->variants, "compare.variants");
    if (c->choices == NULL || c->variants == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to compare");
    }
    if (n_own > 0) {
        c->variants[0].assignments = "";
    }
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < r->n_schedules; i++) {
        status =
            me_schedule_choice_parse(r->schedules[i], diag, &c->choices[i]);
    }
    for (size_t i = 0; status == ME_OK && i < r->n_variants; i++) {
        status =
            me_variant_parse(r->variants[i], diag, &c->variants[i + n_own]);
    }
    return status == ME_OK ? check_names(c, diag) : status;
}

static me_status make_settings(me_compare_run *c, me_diag *diag)
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
static me_status check_variants(const me_compare_run *c, me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < c->n_variants; i++) {
        if (c->request.n_schedules > 0 && sets_schedule(&c->variants[i])) {
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
static me_status finish_job(const me_compare_run *c, const setting *s,
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
static bool is_reason(const setting *s)
{
    const me_status status = s->status;
    return !s->is_split &&
           (status == ME_ERR_CONFIG || status == ME_ERR_UNSUPPORTED ||
            status == ME_ERR_MISMATCH || status == ME_ERR_OVERFLOW);
}

static me_status plan_setting(const me_compare_run *c, setting *s,
                              me_diag *diag)
{
    const me_run_options options = {
        .strict = c->request.strict,
        .no_fold = c->request.no_fold,
        .keeps_course = !c->request.leaves_job_out,
        .threads = c->request.threads,
        .shows_progress = c->request.shows_progress,
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
    if (status == ME_OK && c->request.durations != NULL) {
        status = me_ticks_step_create(me_run_plan(s->run), &c->durations, diag,
                                      &s->step);
    }
    return status;
}

static bool plan_task(void *self, uint32_t task)
{
    const me_compare_run *c = self;
    setting *s = &c->settings[task];
    s->status = me_input_agree(c->transport, "the job of a setting",
                               plan_setting(c, s, &s->diag), &s->diag);
    if (s->status == ME_OK) {
        s->status = me_run_agree(s->run, &s->diag);
    }
    s->is_split = s->status == ME_ERR_MISMATCH;
    return s->status == ME_OK || is_reason(s);
}

static bool gather_task(void *self, uint32_t task)
{
    const me_compare_run *c = self;
    setting *s = &c->settings[task];
    if (s->run != NULL) {
        s->status = me_run_gather(s->run, &s->diag);
    }
    return s->status == ME_OK || is_reason(s);
}

/** What the job cannot do is written down. */
static me_status settle(setting *s, me_diag *diag)
{
    const me_status status = s->status;
    if (status == ME_OK) {
        return ME_OK;
    }
    const bool explains = is_reason(s);
    me_run_destroy(s->run);
    s->run = NULL;
    s->status = ME_OK;
    if (explains) {
        me_diag_line(&s->diag, s->reason);
        return ME_OK;
    }
    *diag = s->diag;
    // A file that cannot be read is the user's input, not our trouble.
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

/** Do something to each setting: one after the other where processes have to
 *  do it together. */
static me_status for_settings(me_compare_run *c,
                              bool (*run)(void *self, uint32_t task),
                              me_diag *diag)
{
    const bool is_alone = me_transport_size(c->transport) == 1;
    me_workers_run(is_alone ? c->request.threads : 1, (uint32_t)c->n_settings,
                   run, c);
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < c->n_settings; i++) {
        status = settle(&c->settings[i], diag);
    }
    return status;
}

/** All settings that can run, in one go. */
static me_status simulate(const me_compare_run *c, me_diag *diag)
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

static void fill_rows(me_compare_run *c)
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
    c->comparison = (me_comparison){
        .version = ME_VERSION,
        .name = c->name,
        .durations = c->request.durations == NULL ? NULL : &c->durations,
        .rows = c->rows,
        .n_rows = c->n_settings,
    };
}

/** What is wrong with every setting alike is wrong with the job, and no row. */
static me_status check_reasons(const me_compare_run *c, me_diag *diag)
{
    const setting *first = &c->settings[0];
    if (c->request.leaves_job_out) {
        return ME_OK;
    }
    for (size_t i = 0; i < c->n_settings; i++) {
        const setting *s = &c->settings[i];
        if (s->run != NULL || strcmp(s->reason, first->reason) != 0) {
            return ME_OK;
        }
    }
    return me_fail(diag, ME_ERR_CONFIG, "%s", first->reason);
}

/** All of them, until one fails by our fault. */
static me_status run_settings(me_compare_run *c, me_diag *diag)
{
    me_status status = agree(c, check_variants(c, diag), diag);
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
    return status == ME_OK ? agree(c, check_reasons(c, diag), diag) : status;
}

/** All schedules do the same work, and some. */
static me_status check_work(const me_ticks *t, me_diag *diag)
{
    const int64_t halves = t->input_gradient + t->weight_gradient;
    if (me_ticks_backward(t) != halves) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--durations: B=%lld is not I=%lld and W=%lld together: "
                       "schedules that split backwards would do other work "
                       "than those that do not",
                       (long long)me_ticks_backward(t),
                       (long long)t->input_gradient,
                       (long long)t->weight_gradient);
    }
    return t->forward + halves > 0
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "--durations: F, I and W are all 0: nothing is left "
                         "to compare");
}

me_status me_compare_run_create(me_transport *transport,
                                const me_compare_request *request,
                                me_diag *diag, me_compare_run **run_out)
{
    me_compare_run *c = me_alloc(1, sizeof *c, "compare");
    if (c == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to compare");
    }
    c->transport = transport;
    c->request = *request;
    c->durations = me_ticks_default();
    me_status status = ME_OK;
    if (request->durations != NULL) {
        status = me_ticks_parse(request->durations, diag, &c->durations);
    }
    if (status == ME_OK) {
        status = check_work(&c->durations, diag);
    }
    if (status == ME_OK) {
        status = read_choices(c, diag);
    }
    if (status != ME_OK) {
        me_compare_run_destroy(c);
        return status;
    }
    c->request.schedules = NULL; // the caller's
    c->request.variants = NULL;
    *run_out = c;
    return ME_OK;
}

me_status me_compare_run_all(me_compare_run *run, const me_config *job,
                             me_diag *diag)
{
    run->job = job;
    (void)snprintf(run->name, sizeof run->name, "%s", job->name);
    const me_status status = run_settings(run, diag);
    run->job = NULL;
    if (status == ME_OK && me_transport_rank(run->transport) == 0) {
        fill_rows(run);
    }
    return status;
}

const me_comparison *me_compare_run_comparison(const me_compare_run *run)
{
    return &run->comparison;
}

int me_compare_run_exit_code(const me_compare_run *run)
{
    int best = ME_EXIT_DOES_NOT_FIT;
    for (size_t i = 0; i < run->comparison.n_rows; i++) {
        const me_report *report = run->comparison.rows[i].report;
        const int code =
            report == NULL ? best : me_exit_code_of(&report->verdict);
        if (code == ME_EXIT_OK) {
            return code;
        }
        best = code == ME_EXIT_CANNOT_SAY ? code : best;
    }
    return best;
}

void me_compare_run_destroy(me_compare_run *run)
{
    me_compare_run *c = run;
    if (c == NULL) {
        return;
    }
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
    me_free(c);
}
