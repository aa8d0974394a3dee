/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/table.h"
#include "report/text.h"
#include "report/units.h"

#include <string.h>

#define POINT_COLUMN(name, field)                                              \
    static void get_##name(const void *row, me_str *cell)                      \
    {                                                                          \
        me_gib_append(cell, ((const me_point_result *)row)->field);            \
    }

POINT_COLUMN(requested, requested_bytes)
POINT_COLUMN(requested_peak, requested_peak_bytes)
POINT_COLUMN(allocated, allocated_bytes)
POINT_COLUMN(allocated_peak, allocated_peak_bytes)
POINT_COLUMN(reserved_peak, reserved_peak_bytes)
POINT_COLUMN(device, device_bytes)

static void get_point(const void *row, me_str *cell)
{
    me_str_append(cell, ((const me_point_result *)row)->name);
}

static const me_column point_columns[] = {
    {"point", NULL, false, false, get_point},
    {"requested", NULL, true, false, get_requested},
    {"requested peak", NULL, true, false, get_requested_peak},
    {"allocated", NULL, true, false, get_allocated},
    {"allocated peak", NULL, true, false, get_allocated_peak},
    {"reserved peak", NULL, true, false, get_reserved_peak},
    {"device", NULL, true, false, get_device},
};

#define ITERATION_COLUMN(name, field)                                          \
    static void get_##name(const void *row, me_str *cell)                      \
    {                                                                          \
        me_gib_append(cell, ((const me_iteration_result *)row)->field);        \
    }

ITERATION_COLUMN(most_requested, requested_bytes)
ITERATION_COLUMN(most_allocated, allocated_bytes)
ITERATION_COLUMN(most_reserved, reserved_bytes)

static void get_iteration(const void *row, me_str *cell)
{
    const me_iteration_result *it = row;
    if (it->iteration == ME_SETUP_ITERATION) {
        me_str_append(cell, "set-up");
    } else {
        me_str_printf(cell, "%d", (int)it->iteration);
    }
}

static void get_phase(const void *row, me_str *cell)
{
    me_str_append(cell, ((const me_iteration_result *)row)->peak.phase);
}

static void get_module(const void *row, me_str *cell)
{
    const char *module = ((const me_iteration_result *)row)->peak.module;
    me_str_append(cell, *module == '\0' ? "-" : module);
}

static void get_op(const void *row, me_str *cell)
{
    const char *op = ((const me_iteration_result *)row)->peak.op;
    me_str_append(cell, op == NULL ? "-" : op);
}

static const me_column iteration_columns[] = {
    {"iteration", NULL, true, false, get_iteration},
    {"requested", NULL, true, false, get_most_requested},
    {"allocated", NULL, true, false, get_most_allocated},
    {"reserved", NULL, true, false, get_most_reserved},
    {"peak in", NULL, false, false, get_phase},
    {"module", NULL, false, false, get_module},
    {"op", NULL, false, false, get_op},
};

static void append_limit(const me_report *report, const me_rank_result *result,
                         me_str *text)
{
    const me_limit_result *limit = &result->limit;
    if (!limit->is_known || (!limit->oom && limit->num_alloc_retries == 0)) {
        return;
    }
    me_str_printf(text, "\nUnder the limit rank %d %s after ",
                  (int)report->verdict.worst_rank,
                  limit->oom ? "dies" : "runs to its end");
    me_count_append(text, limit->num_alloc_retries);
    me_str_append(text, " times freeing cached blocks, with ");
    me_gib_append(text, limit->reserved_bytes);
    me_str_append(text, " GiB reserved\n");
}

/** Points inside a forward, one pair a micro-batch, are for JSON. */
static me_status append_points(const me_rank_result *result, me_str *text)
{
    me_point_result *shown =
        me_alloc(result->n_points, sizeof *shown, "text.points");
    if (shown == NULL) {
        return ME_ERR_NOMEM;
    }
    size_t n_shown = 0;
    for (uint32_t i = 0; i < result->n_points; i++) {
        if (strncmp(result->points[i].name, "fwd", 3) != 0) {
            shown[n_shown++] = result->points[i];
        }
    }
    const me_status status =
        me_table_print(ME_TABLE(point_columns, shown, n_shown), text);
    me_free(shown);
    return status;
}

static me_status append_iterations(const me_rank_result *result, me_str *text)
{
    return me_table_print(
        ME_TABLE(iteration_columns, result->iterations, result->n_iterations),
        text);
}

me_status me_text_course(const me_report *report, me_str *text)
{
    const me_rank_result *result = me_report_worst(report);
    const int rank = (int)report->verdict.worst_rank;
    me_status status = ME_OK;
    if (result->n_iterations > 0) {
        me_str_printf(text, "\nIterations of rank %d: peaks in GiB\n", rank);
        status = append_iterations(result, text);
    }
    if (status == ME_OK && result->n_points > 0) {
        me_str_printf(text,
                      "\nPoints of rank %d: GiB, a peak covers the time since "
                      "the line above\n",
                      rank);
        status = append_points(result, text);
    }
    if (status == ME_OK) {
        append_limit(report, result, text);
    }
    return status;
}
