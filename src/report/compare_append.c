/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_format.h"

static me_status append(const me_compare_print *print, me_format format,
                        me_str *text)
{
    switch (format) {
    case ME_FORMAT_TEXT:
    case ME_FORMAT_BRIEF:
    case ME_FORMAT_BRIEF_RANKS:
    case ME_FORMAT_CHECK:
    case ME_FORMAT_FIT: return me_compare_text(print, text);
    case ME_FORMAT_JSON:
    case ME_FORMAT_JSON_CLASSES: return me_compare_json(print, text);
    case ME_FORMAT_CSV: return me_compare_csv(print, text);
    case ME_FORMAT_HTML: return me_compare_html(print, text);
    }
    return ME_ERR_INTERNAL;
}

me_status me_compare_append(const me_comparison *comparison, me_format format,
                            bool has_course, me_diag *diag, me_str *text)
{
    me_compare_line *lines = NULL;
    me_status status = me_compare_lines_create(comparison, diag, &lines);
    if (status != ME_OK) {
        return status;
    }
    status = append(&(me_compare_print){.comparison = comparison,
                                        .lines = lines,
                                        .has_course = has_course},
                    format, text);
    if (status != ME_OK) {
        (void)me_fail(diag, status, "cannot print the comparison: %s",
                      me_status_text(status));
    }
    me_compare_lines_destroy(lines, comparison->n_rows);
    return status;
}
