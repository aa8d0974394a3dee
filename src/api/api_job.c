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
static me_status begin_change(const memest_job *job, me_diag *diag,
                              me_config **config_out)
{
    *config_out = me_config_clone(job->config);
    return *config_out == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no host memory for the job")
               : ME_OK;
}

static memest_status end_change(memest_job *job, me_config *config,
                                me_status status)
{
    if (status == ME_OK) {
        me_config_destroy(job->config);
        job->config = config;
    } else {
        me_config_destroy(config);
    }
    return me_api_status(status);
}

memest_status memest_job_read_file(memest_job *job, const char *model,
                                   memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_config *config = NULL;
    me_status status = begin_change(job, diag, &config);
    if (status == ME_OK) {
        status = me_config_read_file(config, model, diag);
    }
    return end_change(job, config, status);
}

memest_status memest_job_read_text(memest_job *job, const char *where,
                                   const char *text, size_t length,
                                   memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_config *config = NULL;
    me_status status = begin_change(job, diag, &config);
    if (status == ME_OK) {
        status = me_config_read_text(config, where, text, length, diag);
    }
    return end_change(job, config, status);
}

memest_status memest_job_read_launch(memest_job *job, int argc,
                                     const char *const *argv,
                                     memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_config *config = NULL;
    me_status status = begin_change(job, diag, &config);
    if (status == ME_OK) {
        me_config_take_unknown(config); // the report names them
        status = me_config_read_launch(config, argc, argv, diag);
    }
    return end_change(job, config, status);
}

memest_status memest_job_set(memest_job *job, const char *option,
                             const char *value, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_config *config = NULL;
    me_status status = begin_change(job, diag, &config);
    if (status == ME_OK) {
        status = me_config_set(config, option, value, diag);
    }
    return end_change(job, config, status);
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
