/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_tracker.h"
#include "base/alloc.h"

me_status me_api_series_init(memest_series *s, const me_op_series *series,
                             me_diag *diag)
{
    s->series = series;
    return me_op_series_growths(series, &s->growths, &s->n_growths) == ME_OK
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no host memory for a series");
}

void me_api_series_fini(memest_series *s)
{
    me_op_series_fini(&s->loaded);
    me_free(s->growths);
    *s = (memest_series){.series = NULL};
}

memest_status memest_series_load(const char *path, memest_series **series_out,
                                 memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    memest_series *s = me_alloc(1, sizeof *s, "api.series");
    if (s == NULL) {
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory for a series"));
    }
    me_status status = me_op_series_load(path, diag, &s->loaded);
    if (status == ME_OK) {
        status = me_api_series_init(s, &s->loaded, diag);
    }
    if (status != ME_OK) {
        memest_series_destroy(s);
        return me_api_status(status);
    }
    *series_out = s;
    return MEMEST_OK;
}

void memest_series_destroy(memest_series *series)
{
    if (series != NULL) {
        me_api_series_fini(series);
        me_free(series);
    }
}

size_t memest_series_n_operations(const memest_series *series)
{
    return series->series->n_rows;
}

bool memest_series_operation(const memest_series *series, size_t index,
                             memest_operation *operation_out)
{
    if (index >= series->series->n_rows) {
        return false;
    }
    const me_op_row *row = &series->series->rows[index];
    const memest_operation whole = {
        .name = row->name,
        .allocated_bytes = row->memory.allocated,
        .active_bytes = row->memory.active,
        .reserved_bytes = row->memory.reserved,
    };
    return me_api_fill(operation_out, &whole, sizeof whole);
}

size_t memest_series_n_markers(const memest_series *series)
{
    return series->series->n_markers;
}

bool memest_series_marker(const memest_series *series, size_t index,
                          memest_marker *marker_out)
{
    if (index >= series->series->n_markers) {
        return false;
    }
    const me_op_marker *marker = &series->series->markers[index];
    const memest_marker whole = {.name = marker->name, .at = marker->at};
    return me_api_fill(marker_out, &whole, sizeof whole);
}

uint64_t memest_series_num_alloc_retries(const memest_series *series)
{
    return series->series->num_alloc_retries;
}

bool memest_series_top(const memest_series *series, size_t place,
                       memest_growth *growth_out)
{
    if (place >= series->n_growths) {
        return false;
    }
    const me_op_growth *growth = &series->growths[place];
    const memest_growth whole = {
        .name = growth->name,
        .bytes = growth->bytes,
        .operation = growth->at,
    };
    return me_api_fill(growth_out, &whole, sizeof whole);
}

memest_status memest_series_text(const memest_series *series,
                                 memest_series_format format, uint32_t top,
                                 char **text_out, memest_error *error)
{
    static const char *const names[] = {
        [MEMEST_SERIES_SUMMARY] = "text",
        [MEMEST_SERIES_JSON] = "json",
        [MEMEST_SERIES_HTML] = "html",
    };
    me_diag *diag = me_api_diag(error);
    me_str text = {0};
    me_status status = ME_OK;
    if ((unsigned)format >= sizeof names / sizeof names[0]) {
        status = me_fail(diag, ME_ERR_CONFIG, "no such format of a series: %d",
                         (int)format);
    } else {
        const me_tool_format how = {.name = names[format],
                                    .top = top == 0 ? ME_TOOL_TOP : top};
        status = me_tool_append_series(series->series, &how, diag, &text);
    }
    return me_api_text(status, &text, diag, text_out, NULL);
}
