/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"

#include "base/alloc.h"

#include <string.h>

me_diag *me_api_diag(memest_error *error)
{
    return error == NULL ? NULL : &error->diag;
}

memest_status me_api_status(me_status status)
{
    return (memest_status)status;
}

/** Bytes that a caller's record and one of ours have both; 0: it has none. */
static size_t common_size(const void *record, size_t size)
{
    size_t given = 0;
    memcpy(&given, record, sizeof given);
    if (given <= sizeof given) {
        return 0;
    }
    return given < size ? given : size;
}

bool me_api_fill(void *record_out, const void *whole, size_t size)
{
    const size_t n = common_size(record_out, size);
    if (n == 0) {
        return false;
    }
    size_t given = 0;
    memcpy(&given, record_out, sizeof given);
    memcpy((char *)record_out + sizeof given,
           (const char *)whole + sizeof given, n - sizeof given);
    memset((char *)record_out + n, 0, given - n);
    return true;
}

bool me_api_read(const void *record, void *whole_out, size_t size)
{
    memset(whole_out, 0, size);
    if (record == NULL) {
        return true;
    }
    const size_t n = common_size(record, size);
    memcpy(whole_out, record, n);
    return n > 0;
}

memest_status me_api_text(me_status status, me_str *text, me_diag *diag,
                          char **text_out, size_t *length_out)
{
    me_str_append(text, ""); // an empty text is one as well
    if (status == ME_OK && me_str_status(text) != ME_OK) {
        status = me_fail(diag, me_str_status(text), "no host memory for text");
    }
    if (status == ME_OK) {
        *text_out = text->text;
        if (length_out != NULL) {
            *length_out = text->length;
        }
        *text = (me_str){0};
    }
    me_str_fini(text);
    return me_api_status(status);
}

me_status me_api_plan(const memest_job *job, const me_run_options *options,
                      me_diag *diag, me_api_run *run_out)
{
    *run_out = (me_api_run){.run = NULL};
    me_config *config = me_config_clone(job->config);
    if (config == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    me_status status = me_config_finish(config, 1, diag);
    if (status == ME_OK) {
        status = me_transport_local_create(&run_out->transport);
        if (status != ME_OK) {
            (void)me_fail(diag, status, "no host memory for the job");
        }
    }
    if (status != ME_OK) {
        me_config_destroy(config);
        return status;
    }
    return me_run_create(run_out->transport, config, options, diag,
                         &run_out->run);
}

void me_api_run_fini(me_api_run *run)
{
    me_run_destroy(run->run);
    me_transport_destroy(run->transport);
    *run = (me_api_run){.run = NULL};
}
