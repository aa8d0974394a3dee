/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/table.h"
#include "report/text.h"
#include "report/units.h"
#include "track/fold.h"

enum {
    RANGES_MAX = 4
};

/** A result whose peaks are ranges. */
typedef struct late_row {
    const me_report *report;
    uint32_t result; /**< index */
} late_row;

static const me_rank_result *result_of(const void *row)
{
    const late_row *r = row;
    return r->report->results[r->result];
}

static void get_ranks(const void *row, me_str *cell)
{
    const late_row *r = row;
    uint32_t *ranks =
        me_alloc((size_t)r->report->world_size, sizeof *ranks, "text.ranks");
    if (ranks == NULL) {
        cell->status = ME_ERR_NOMEM;
        return;
    }
    size_t count = 0;
    for (int32_t i = 0; i < r->report->world_size; i++) {
        if (r->report->ranks[i].result == r->result) {
            ranks[count++] = (uint32_t)i;
        }
    }
    me_ranges_append(cell, ranks, count, RANGES_MAX);
    me_free(ranks);
}

static void get_requested(const void *row, me_str *cell)
{
    me_gib_append(cell, me_rank_result_peak(result_of(row))->requested_bytes);
}

static void get_requested_most(const void *row, me_str *cell)
{
    me_gib_append(cell, result_of(row)->late.requested_bytes);
}

static void get_reserved(const void *row, me_str *cell)
{
    me_gib_append(cell, me_rank_result_peak(result_of(row))->reserved_bytes);
}

static void get_reserved_most(const void *row, me_str *cell)
{
    me_gib_append(cell, result_of(row)->late.reserved_bytes);
}

static const me_column columns[] = {
    {"ranks", NULL, true, false, get_ranks},
    {"requested", NULL, true, false, get_requested},
    {"at most", NULL, true, false, get_requested_most},
    {"reserved", NULL, true, false, get_reserved},
    {"at most", NULL, true, false, get_reserved_most},
};

me_status me_text_late(const me_report *report, me_str *text)
{
    late_row *rows =
        me_alloc((size_t)report->n_results + 1, sizeof *rows, "text.late");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    size_t n_rows = 0;
    for (uint32_t i = 0; i < report->n_results; i++) {
        if (report->results[i]->late.is_known &&
            me_rank_result_peak(report->results[i]) != NULL) {
            rows[n_rows++] = (late_row){report, i};
        }
    }
    me_status status = ME_OK;
    if (n_rows > 0) {
        me_str_append(text, "\nLate frees: what is sent comes back when the "
                            "GPU has sent it, so that peaks\ndepend on how far "
                            "ranks run apart; GiB in iteration 1\n");
        status = me_table_print(
            &(me_table){.columns = columns,
                        .n_columns = sizeof columns / sizeof *columns,
                        .rows = rows,
                        .n_rows = n_rows,
                        .row_bytes = sizeof *rows},
            text);
    }
    me_free(rows);
    return status;
}
