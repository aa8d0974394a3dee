/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/tool_rows.h"
#include "report/runtime.h"

#include <stdio.h>
#include <string.h>

/** The roofline of the job's card. */
static me_status find_roofline(me_tool *t, const me_run *run, me_diag *diag,
                               me_roofline *roofline_out)
{
    const me_job_card *card = me_run_card(run);
    (void)snprintf(t->card, sizeof t->card, "%s", card->card.name);
    return me_roofline_of(&card->rates, t->card, diag, roofline_out);
}

me_status me_tool_begin_runtime(me_tool *t, const me_run *run, me_engine *e,
                                me_diag *diag)
{
    me_roofline roofline;
    const me_status status = find_roofline(t, run, diag, &roofline);
    if (status != ME_OK) {
        return status;
    }
    t->runtime =
        me_runtime_estimator_create(e, t->mod, &roofline, t->options.iteration);
    return t->runtime == NULL ? me_fail(diag, ME_ERR_NOMEM,
                                        "no host memory for RuntimeEstimator")
                              : ME_OK;
}

me_status me_tool_append_runtime(const me_tool *t, const me_tool_format *format,
                                 me_diag *diag, me_str *text)
{
    (void)diag;
    if (strcmp(format->name, "json") == 0) {
        return me_runtime_json_append(text, t->runtime, t->card,
                                      format->mem.depth);
    }
    me_runtime_append(text, t->runtime, format->mem.depth);
    return me_str_status(text);
}
