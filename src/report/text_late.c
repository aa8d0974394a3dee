/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "report/table.h"
#include "report/text.h"
#include "report/verdict.h"
#include "track/fold.h"

#include <stdint.h>
#include <string.h>

enum {
    RANGES_MAX = 4,
    ROWS_MAX = 16, /**< more are shown a stage a row */
    NO_STAGE = -1,
    OTHERS = -2 /* in place of a stage: a row of all that are not shown */
};

/** A result whose peaks are ranges. */
typedef struct late_row {
    const me_report *report;
    uint32_t result; /**< index */
    int32_t stage;   /**< whose ranks the row is of; NO_STAGE: the result's;
                          OTHERS */
    uint64_t requested;
    uint64_t requested_most;
    uint64_t reserved;
    uint64_t reserved_most;
    uint64_t least; /**< of the range of what is reserved */
    uint64_t most;
} late_row;

static void get_ranks(const void *row, me_str *cell)
{
    const late_row *r = row;
    if (r->stage == OTHERS) {
        me_str_append(cell, "others");
        return;
    }
    uint32_t *ranks =
        me_alloc((size_t)r->report->world_size, sizeof *ranks, "text.ranks");
    if (ranks == NULL) {
        cell->status = ME_ERR_NOMEM;
        return;
    }
    size_t count = 0;
    for (int32_t i = 0; i < r->report->world_size; i++) {
        const me_report_rank *rank = &r->report->ranks[i];
        if (r->stage == NO_STAGE ? rank->result == r->result
                                 : rank->place.pp == r->stage) {
            ranks[count++] = (uint32_t)i;
        }
    }
    me_ranges_append(cell, ranks, count, RANGES_MAX);
    me_free(ranks);
}

static const me_column columns[] = {
    {"ranks", NULL, true, false, get_ranks},
};

static const me_schema late_schema =
    ME_SCHEMA(late_row, {ME_BYTES(late_row, requested), .title = "requested"},
              {ME_BYTES(late_row, requested_most), .title = "at most"},
              {ME_BYTES(late_row, reserved), .title = "reserved"},
              {ME_BYTES(late_row, reserved_most), .title = "at most"});

static const me_schema range_schema =
    ME_SCHEMA(late_row, {ME_BYTES(late_row, least), .title = "at least"},
              {ME_BYTES(late_row, reserved), .title = "reserved"},
              {ME_BYTES(late_row, most), .title = "at most"});

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
    const me_schema *schema;
} late_table;

static late_row make_row(const me_report *report, uint32_t index)
{
    const me_rank_result *result = report->results[index];
    const me_peak_result *peak = me_rank_result_peak(result);
    const me_reserved_range range =
        me_verdict_reserved_range(report->config, result);
    return (late_row){.report = report,
                      .result = index,
                      .stage = NO_STAGE,
                      .requested = peak->requested_bytes,
                      .requested_most = result->late.requested_bytes,
                      .reserved = peak->reserved_bytes,
                      .reserved_most = result->late.reserved_bytes,
                      .least = range.least_bytes,
                      .most = range.most_bytes};
}

/** The ends of all ranks of a stage. */
static void join(late_row *to, const late_row *row)
{
    to->requested = me_max_u64(to->requested, row->requested);
    to->requested_most = me_max_u64(to->requested_most, row->requested_most);
    to->reserved = me_max_u64(to->reserved, row->reserved);
    to->reserved_most = me_max_u64(to->reserved_most, row->reserved_most);
    to->least = me_min_u64(to->least, row->least);
    to->most = me_max_u64(to->most, row->most);
}

static uint64_t highest(const late_row *row)
{
    return me_max_u64(row->most, row->reserved_most);
}

/** Of each result the stage of its lowest rank: one walk over the ranks. The
 *  caller's. */
static int32_t *find_stages(const me_report *report)
{
    int32_t *stages =
        me_alloc((size_t)report->n_results + 1, sizeof *stages, "text.stages");
    for (int32_t i = report->world_size - 1; stages != NULL && i >= 0; i--) {
        stages[report->ranks[i].result] = report->ranks[i].place.pp;
    }
    return stages;
}

/** Shards that begin elsewhere make hundreds of rows of the same stages.
 *  @param stages  of each result
 *  @return rows that are left */
static size_t by_stage(const int32_t *stages, late_row *rows, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        rows[i].stage = stages[rows[i].result];
        size_t at = 0;
        while (at < kept && rows[at].stage != rows[i].stage) {
            at++;
        }
        if (at == kept) {
            rows[kept++] = rows[i];
        } else {
            join(&rows[at], &rows[i]);
        }
    }
    return kept;
}

/** Rows that reach highest stay, in order; the others are one. @return rows */
static size_t shorten(late_row *rows, size_t n, size_t n_shown)
{
    late_row others = {.stage = NO_STAGE};
    while (n >= n_shown) {
        size_t least = 0;
        for (size_t i = 1; i < n; i++) {
            if (highest(&rows[i]) < highest(&rows[least])) {
                least = i;
            }
        }
        if (others.stage == NO_STAGE) {
            others = rows[least];
            others.stage = OTHERS;
        } else {
            join(&others, &rows[least]);
        }
        memmove(&rows[least], &rows[least + 1], (n - least - 1) * sizeof *rows);
        n--;
    }
    rows[n] = others;
    return n + 1;
}

static me_status print_late(const me_report *report, const late_table *table,
                            size_t n_shown, late_row *rows, me_str *text)
{
    size_t n_rows = 0;
    for (uint32_t i = 0; i < report->n_results; i++) {
        if (table->is_shown(report, i) &&
            me_rank_result_peak(report->results[i]) != NULL) {
            rows[n_rows++] = make_row(report, i);
        }
    }
    if (n_rows == 0) {
        return ME_OK;
    }
    if (n_rows > ROWS_MAX) {
        int32_t *stages = find_stages(report);
        if (stages == NULL) {
            return ME_ERR_NOMEM;
        }
        n_rows = by_stage(stages, rows, n_rows);
        me_free(stages);
    }
    n_rows = n_rows > n_shown ? shorten(rows, n_rows, n_shown) : n_rows;
    me_str_append(text, table->head);
    return me_table_print(
        ME_FIELDS_TABLE(columns, 0, table->schema, rows, n_rows), text);
}

me_status me_text_late(const me_report *report, size_t n_shown, me_str *text)
{
    static const late_table tables[] = {
        {late_head, has_late_peak, &late_schema},
        {range_head, has_range, &range_schema},
    };
    late_row *rows =
        me_alloc((size_t)report->n_results + 1, sizeof *rows, "text.late");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    me_status status = ME_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == ME_OK;
         i++) {
        status = print_late(report, &tables[i], n_shown, rows, text);
    }
    me_free(rows);
    return status;
}
