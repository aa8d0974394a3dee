/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/quantity.h"
#include "report/table.h"
#include "report/text.h"

#include <string.h>

static void get_iteration(const void *row, me_str *cell)
{
    const me_iteration_result *it = row;
    if (it->iteration == ME_SETUP_ITERATION) {
        me_str_append(cell, "set-up");
    } else if (me_is_evaluation(it)) {
        me_str_append(cell, "evaluation");
    } else {
        me_str_printf(cell, "%d", (int)it->iteration);
    }
}

static const me_column iteration_columns[] = {
    {"iteration", NULL, true, false, get_iteration},
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
        me_table_print(&(me_table){.schema = &me_point_schema,
                                   .rows = shown,
                                   .n_rows = n_shown,
                                   .row_bytes = sizeof *shown},
                       text);
    me_free(shown);
    return status;
}

static me_status append_iterations(const me_rank_result *result, me_str *text)
{
    return me_table_print(
        ME_FIELDS_TABLE(iteration_columns, 0, &me_iteration_schema,
                        result->iterations, result->n_iterations),
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
