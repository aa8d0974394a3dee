/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/table.h"
#include "report/text.h"
#include "report/units.h"
#include "report/verdict.h"
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

static void get_least(const void *row, me_str *cell)
{
    const late_row *r = row;
    me_gib_append(cell,
                  me_verdict_reserved_range(r->report->config, result_of(row))
                      .least_bytes);
}

static void get_most(const void *row, me_str *cell)
{
    const late_row *r = row;
    me_gib_append(cell,
                  me_verdict_reserved_range(r->report->config, result_of(row))
                      .most_bytes);
}

static const me_column range_columns[] = {
    {"ranks", NULL, true, false, get_ranks},
    {"at least", NULL, true, false, get_least},
    {"reserved", NULL, true, false, get_reserved},
    {"at most", NULL, true, false, get_most},
};

static const char late_head[] =
    "\nLate frees: what is sent comes back when the GPU has sent it, so that "
    "peaks\ndepend on how far ranks run apart; GiB in iteration 1\n";
static const char range_head[] =
    "\nLate frees: how long neighbours make their communicators decides when "
    "blocks\ncome back, and which of them serve again; GiB that measured runs "
    "lie between\n";

static bool has_late_peak(const me_report *report, uint32_t result)
{
    return report->results[result]->late.is_known;
}

static bool has_range(const me_report *report, uint32_t result)
{
    return me_verdict_reserved_range(report->config, report->results[result])
        .is_known;
}

/** A table of the results that have what is shown; nothing without any. */
typedef struct late_table {
    const char *head;
    bool (*is_shown)(const me_report *report, uint32_t result);
    const me_column *columns;
    size_t n_columns;
} late_table;

static me_status print_late(const me_report *report, const late_table *table,
                            late_row *rows, me_str *text)
{
    size_t n_rows = 0;
    for (uint32_t i = 0; i < report->n_results; i++) {
        if (table->is_shown(report, i) &&
            me_rank_result_peak(report->results[i]) != NULL) {
            rows[n_rows++] = (late_row){report, i};
        }
    }
    if (n_rows == 0) {
        return ME_OK;
    }
    me_str_append(text, table->head);
    return me_table_print(&(me_table){.columns = table->columns,
                                      .n_columns = table->n_columns,
                                      .rows = rows,
                                      .n_rows = n_rows,
                                      .row_bytes = sizeof *rows},
                          text);
}

me_status me_text_late(const me_report *report, me_str *text)
{
    static const late_table tables[] = {
        {late_head, has_late_peak, columns, sizeof columns / sizeof *columns},
        {range_head, has_range, range_columns,
         sizeof range_columns / sizeof *range_columns},
    };
    late_row *rows =
        me_alloc((size_t)report->n_results + 1, sizeof *rows, "text.late");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    me_status status = ME_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == ME_OK;
         i++) {
        status = print_late(report, &tables[i], rows, text);
    }
    me_free(rows);
    return status;
}
