/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/search_report.h"

#include <string.h>

double me_search_tokens(const me_search_result *result)
{
    return result->step_ns == 0
               ? 0
               : (double)result->step_tokens / ((double)result->step_ns * 1e-9);
}

uint32_t me_search_n_notes(const me_search_row *row)
{
    return (uint32_t)me_run_config(row->run)->assumptions.count;
}

me_report me_search_notes(const me_search_row *row, char **texts)
{
    const me_config *config = me_run_config(row->run);
    const uint32_t n = me_search_n_notes(row);
    for (uint32_t i = 0; i < n; i++) {
        // A report owns its texts; here they are borrowed, and only read.
        const char *note = config->assumptions.flags[i].note;
        memcpy(&texts[i], &note, sizeof note);
    }
    return (me_report){
        .config = config, .assumptions = texts, .n_assumptions = n};
}

me_status me_search_append(const me_search_found *found, me_format format,
                           me_diag *diag, me_str *text)
{
    const me_status status =
        format == ME_FORMAT_JSON  ? me_search_json(found, text)
        : format == ME_FORMAT_CSV ? me_search_csv(found, text)
                                  : me_search_text(found, text);
    return status == ME_OK
               ? status
               : me_fail(diag, status, "cannot print the search: %s",
                         me_status_text(status));
}
