/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "config/file.h"
#include "config/launch_command.h"
#include "config/options.h"

memest_job *memest_job_create(void)
{
    memest_job *job = me_alloc(1, sizeof *job, "api.job");
    if (job == NULL) {
        return NULL;
    }
    job->config = me_config_create();
    if (job->config == NULL) {
        me_free(job);
        return NULL;
    }
    return job;
}

void memest_job_destroy(memest_job *job)
{
    if (job != NULL) {
        me_config_destroy(job->config);
        me_free(job);
    }
}

memest_job *memest_job_clone(const memest_job *job)
{
    memest_job *copy = me_alloc(1, sizeof *copy, "api.job");
    if (copy == NULL) {
        return NULL;
    }
    copy->config = me_config_clone(job->config);
    if (copy->config == NULL) {
        me_free(copy);
        return NULL;
    }
    return copy;
}

/** A copy to read into, so that a failure leaves the job as it was. */
typedef struct change {
    memest_job *job;
    me_config *config; /**< owned */
    me_diag *diag;
    uint64_t lost; /**< me_alloc_lost() when it began */
} change;

static me_status begin_change(memest_job *job, memest_error *error,
                              change *change_out)
{
    *change_out = (change){.job = job,
                           .config = me_config_clone(job->config),
                           .diag = me_api_diag(error),
                           .lost = me_alloc_lost()};
    return change_out->config == NULL ? me_fail(change_out->diag, ME_ERR_NOMEM,
                                                "no host memory for the job")
                                      : ME_OK;
}

static memest_status end_change(const change *c, me_status done)
{
    const me_status status = me_alloc_check(c->lost, done, c->diag);
    if (status == ME_OK) {
        me_config_destroy(c->job->config);
        c->job->config = c->config;
    } else {
        me_config_destroy(c->config);
    }
    return me_api_status(status);
}

memest_status memest_job_read_file(memest_job *job, const char *model,
                                   memest_error *error)
{
    change c;
    me_status status = begin_change(job, error, &c);
    if (status == ME_OK) {
        status = me_config_read_file(c.config, model, c.diag);
    }
    return end_change(&c, status);
}

memest_status memest_job_read_text(memest_job *job, const char *where,
                                   const char *text, size_t length,
                                   memest_error *error)
{
    change c;
    me_status status = begin_change(job, error, &c);
    if (status == ME_OK) {
        status = me_config_read_text(c.config, where, text, length, c.diag);
    }
    return end_change(&c, status);
}

memest_status memest_job_read_launch(memest_job *job, int argc,
                                     const char *const *argv,
                                     memest_error *error)
{
    change c;
    me_status status = begin_change(job, error, &c);
    if (status == ME_OK) {
        me_config_take_unknown(c.config); // the report names them
        status = me_config_read_launch(c.config, argc, argv, c.diag);
    }
    return end_change(&c, status);
}

memest_status memest_job_set(memest_job *job, const char *option,
                             const char *value, memest_error *error)
{
    change c;
    me_status status = begin_change(job, error, &c);
    if (status == ME_OK) {
        status = me_config_set(c.config, option, value, c.diag);
    }
    return end_change(&c, status);
}

memest_status memest_job_check(const memest_job *job, memest_error *error)
{
    const me_run_options options = {.strict = false};
    me_api_run run;
    const me_status status =
        me_api_plan(job, &options, me_api_diag(error), &run);
    me_api_run_fini(&run);
    return me_api_status(status);
}

memest_status memest_job_text(const memest_job *job, char **text_out,
                              memest_error *error)
{
    const me_run_options options = {.strict = false};
    me_diag *diag = me_api_diag(error);
    me_str text = {0};
    me_api_run run;
    const me_status status = me_api_plan(job, &options, diag, &run);
    if (status == ME_OK) {
        me_config_dump(me_run_config(run.run), &text);
    }
    me_api_run_fini(&run);
    return me_api_text(status, &text, diag, text_out, NULL);
}

memest_status memest_options_text(char **text_out, memest_error *error)
{
    me_str text = {0};
    (void)me_options_list(NULL, &text);
    return me_api_text(ME_OK, &text, me_api_diag(error), text_out, NULL);
}

void memest_text_destroy(char *text)
{
    me_free(text);
}
